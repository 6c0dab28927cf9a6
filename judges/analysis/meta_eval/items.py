"""From labels to questions: what several people said of one claim becomes one item, with one verdict or with none.

Pure. A person's newest word on an item is the one that counts; between people the majority decides.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

from judges.analysis.labels import Human, Label

_Key: TypeAlias = tuple[object, ...]
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class LeftOut(StrEnum):
    """Why an item tells nothing about a judge."""

    BY_CODE = "decided_by_code"
    """No model can be asked: code decided the leaf."""
    UNCLEAR = "unclear"
    """Nobody could tell whether the claim holds."""
    DISPUTED = "people_disagree"
    """As many people say that it holds as say that it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One claim with the labels that people gave it, the newest of each person. ``label`` is the first of them.

    ``human`` is None where the item is ``left_out``.
    """

    label: Label
    labels: tuple[Label, ...]
    human: bool | None
    left_out: LeftOut | None = None

    @property
    def unanimous(self) -> bool:
        return len({label.human for label in self.labels}) == 1

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Everybody who said something, by name, sorted."""
        return tuple(sorted({label.reviewer for label in self.labels if label.reviewer}))


def items_of(labels: Iterable[Label]) -> tuple[Item, ...]:
    """The items, in the order in which the labels first name them."""
    by_key: dict[_Key, list[Label]] = {}
    for label in labels:
        by_key.setdefault(_key(label), []).append(label)
    return tuple(_item(each) for each in by_key.values())


def _key(label: Label) -> _Key:
    """What makes two labels be about the same question: the same leaf, or the same claim on the same pages."""
    if label.result_id is not None and label.leaf is not None:
        return label.result_id, label.leaf, label.claim
    answer = label.answer_sha256 or hashlib.sha256(label.answer.encode("utf-8", "replace")).hexdigest()
    pages = tuple((page.url, page.page_id, page.sha256, page.text) for page in label.pages)
    return label.claim, label.sources, label.instruction, label.task, answer, pages


def _item(labels: Sequence[Label]) -> Item:
    newest: dict[object, Label] = {}
    for place, label in enumerate(labels):
        who = label.reviewer or place  # whoever gives no name is somebody else each time
        if who not in newest or (label.at or _LONG_AGO) >= (newest[who].at or _LONG_AGO):
            newest[who] = label
    said = tuple(newest.values())
    counts = Counter(label.human for label in said)
    passed, failed = counts[Human.PASSED], counts[Human.FAILED]
    left_out = None
    if said[0].claim is None:
        left_out = LeftOut.BY_CODE
    elif passed == failed:
        left_out = LeftOut.DISPUTED if passed else LeftOut.UNCLEAR
    return Item(label=said[0], labels=said, human=None if left_out else passed > failed, left_out=left_out)
