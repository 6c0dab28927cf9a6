"""Items: the labels of several people on one claim, combined into one human verdict or none. Pure.

Each person's newest label counts. Between people the majority decides.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeAlias

from judges.analysis.labels import HumanDecision, Label

_Key: TypeAlias = tuple[object, ...]
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Exclusion(StrEnum):
    """Reason why an item is excluded from meta-evaluation."""

    BY_CODE = "decided_by_code"
    """Code decided the leaf, so no model can be asked."""
    UNCLEAR = "unclear"
    """The reviewers could not decide whether the claim holds."""
    DISPUTED = "people_disagree"
    """As many people passed the claim as failed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One claim with the newest label of each person. ``label`` is the first of them.

    ``human`` is None if the item is ``left_out``.
    """

    label: Label
    labels: tuple[Label, ...]
    human: bool | None
    left_out: Exclusion | None = None

    @property
    def unanimous(self) -> bool:
        return len({label.human for label in self.labels}) == 1


def items_of(labels: Iterable[Label]) -> tuple[Item, ...]:
    """Return the items, in order of first appearance in the labels."""
    by_key: dict[_Key, list[Label]] = {}
    for label in labels:
        by_key.setdefault(_key(label), []).append(label)
    return tuple(_item(each) for each in by_key.values())


def _key(label: Label) -> _Key:
    """Return a key that is equal for labels on the same leaf, or on the same claim with the same pages."""
    if label.result_id is not None and label.leaf is not None:
        return label.result_id, label.leaf, label.claim
    answer = label.answer_sha256 or hashlib.sha256(label.answer.encode("utf-8", "replace")).hexdigest()
    pages = tuple((page.url, page.page_id, page.sha256, page.text) for page in label.pages)
    return label.claim, label.sources, label.instruction, label.task, answer, pages


def _item(labels: Sequence[Label]) -> Item:
    newest: dict[object, Label] = {}
    for place, label in enumerate(labels):
        person = label.reviewer or place  # each label without a name counts as another person
        if person not in newest or (label.at or _LONG_AGO) >= (newest[person].at or _LONG_AGO):
            newest[person] = label
    counted = tuple(newest.values())
    counts = Counter(label.human for label in counted)
    passed, failed = counts[HumanDecision.PASSED], counts[HumanDecision.FAILED]
    left_out = None
    if counted[0].claim is None:
        left_out = Exclusion.BY_CODE
    elif passed == failed:
        left_out = Exclusion.DISPUTED if passed else Exclusion.UNCLEAR
    return Item(label=counted[0], labels=counted, human=None if left_out else passed > failed, left_out=left_out)
