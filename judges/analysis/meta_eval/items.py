"""Items: the labels of several people on one claim, combined into one human verdict or none, and their judging.

Each person's newest label counts. Between people the majority decides. The recorded verdicts of all labels are kept.

Items are judged with their recorded pages; nothing is captured. A fault is not a verdict: the item becomes
``not_judged`` with the reason.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, TypeAlias

from cache.capture import CaptureOutcome, Evidence
from cache.errors import CacheError, NoEvidence
from cache.urls import canonical_key
from judges.analysis.labels import HumanDecision, Label, LabelledPage, RecordedVerdict
from judges.text_pages import evidence_of
from judges.verifier import ClaimJudge, ClaimQuestion
from rubrics.verdict import Claim, Outcome, Verdict

_Key: TypeAlias = tuple[object, ...]
DECIDED = (Outcome.PASSED, Outcome.FAILED)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class PartialRule(StrEnum):
    """Rule that turns three-way labels and verdicts into two-way ones. It is part of every report."""

    FAILED = "failed"
    """Partial support counts as failed, as in rubrics."""
    PASSED = "passed"
    EXCLUDED = "excluded"
    """Claims that people or the judge call partly supported are left out and counted."""

    @property
    def in_reports(self) -> str:
        """Name of the rule, for example ``partial=failed``."""
        return f"partial={self}"


class Exclusion(StrEnum):
    """Reason why an item is excluded from meta-evaluation."""

    BY_CODE = "decided_by_code"
    """Code decided the leaf, so no model can be asked."""
    UNCLEAR = "unclear"
    """The reviewers could not decide whether the claim holds."""
    DISPUTED = "people_disagree"
    """As many people passed the claim as failed it."""
    PARTIAL = "partial"
    """People call the claim partly supported, and the rule excludes such claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One claim with the newest label of each person, of ``label_count`` labels. ``label`` is the first of them.

    ``human`` is None if the item is ``left_out``. ``recorded`` has one verdict per judge; ``contradicting`` are the
    judges with several recorded verdicts that differ, which are left out.
    """

    label: Label
    labels: tuple[Label, ...]
    human: bool | None
    left_out: Exclusion | None = None
    recorded: tuple[RecordedVerdict, ...] = ()
    contradicting: tuple[tuple[str, str], ...] = ()
    label_count: int = 1

    @property
    def unanimous(self) -> bool:
        return len({label.human for label in self.labels}) == 1


def items_of(labels: Iterable[Label], rule: PartialRule = PartialRule.FAILED) -> tuple[Item, ...]:
    """Return the items, in order of first appearance in the labels."""
    by_key: dict[_Key, list[Label]] = {}
    for label in labels:
        by_key.setdefault(item_key(label), []).append(label)
    return tuple(_item(each, rule) for each in by_key.values())


def item_key(label: Label) -> _Key:
    """Return a key that is equal for labels on the same leaf, or on the same claim with the same pages.

    Rows of an imported set that have ids are different items.
    """
    if label.result_id is not None and label.leaf is not None:
        return label.result_id, label.leaf, label.claim
    answer = label.answer_sha256 or hashlib.sha256(label.answer.encode("utf-8", "replace")).hexdigest()
    pages = tuple((page.url, page.page_id, page.sha256, page.text) for page in label.pages)
    return label.row, label.claim, label.sources, label.instruction, label.task, answer, pages


def judged_as(verdict: RecordedVerdict, rule: PartialRule) -> bool | None:
    """Return whether a recorded verdict counts as passed; None if it is no verdict or ``rule`` excludes it."""
    if verdict.partial and verdict.outcome in DECIDED:
        return {PartialRule.PASSED: True, PartialRule.FAILED: False}.get(rule)
    return verdict.outcome is Outcome.PASSED if verdict.outcome in DECIDED else None


def _item(labels: Sequence[Label], rule: PartialRule) -> Item:
    newest: dict[object, Label] = {}
    for place, label in enumerate(labels):
        person = label.reviewer or place  # each label without a name counts as another person
        if person not in newest or (label.at or _LONG_AGO) >= (newest[person].at or _LONG_AGO):
            newest[person] = label
    counted = tuple(newest.values())
    human, left_out = _decision(counted, rule)
    recorded, contradicting = one_per_judge(verdict for label in labels for verdict in label.recorded)
    return Item(
        label=counted[0],
        labels=counted,
        human=human,
        left_out=left_out,
        recorded=recorded,
        contradicting=contradicting,
        label_count=len(labels),
    )


def _decision(labels: Sequence[Label], rule: PartialRule) -> tuple[bool | None, Exclusion | None]:
    """Return the decision of the majority, or None and the reason why there is none."""
    if labels[0].claim is None:
        return None, Exclusion.BY_CODE
    counts = Counter(label.human for label in labels)
    partial = counts.pop(HumanDecision.PARTIAL, 0)
    if rule is not PartialRule.EXCLUDED:
        counts[HumanDecision.PASSED if rule is PartialRule.PASSED else HumanDecision.FAILED] += partial
        partial = 0
    passed, failed = counts[HumanDecision.PASSED], counts[HumanDecision.FAILED]
    most = max(passed, failed, partial)
    if not most:
        return None, Exclusion.UNCLEAR
    if [passed, failed, partial].count(most) > 1:
        return None, Exclusion.DISPUTED
    return (None, Exclusion.PARTIAL) if partial == most else (passed == most, None)


def one_per_judge(
    verdicts: Iterable[RecordedVerdict],
) -> tuple[tuple[RecordedVerdict, ...], tuple[tuple[str, str], ...]]:
    """Return one verdict per judge, and the judges whose verdicts contradict each other.

    Several labels can contain the same verdict, so equal verdicts are one. A verdict replaces a missing one.
    """
    by_judge: dict[tuple[str, str], list[RecordedVerdict]] = {}
    for verdict in verdicts:
        by_judge.setdefault(verdict.judge, []).append(verdict)
    kept, contradicting = [], []
    for judge, every in by_judge.items():
        decided = [one for one in every if one.outcome in DECIDED]
        if len({(one.outcome, one.partial) for one in decided}) > 1:
            contradicting.append(judge)
        else:
            kept.append((decided or every)[-1])
    return tuple(kept), tuple(contradicting)


StoredEvidence: TypeAlias = Callable[[str], Awaitable[Evidence]]
"""Returns the evidence of a stored capture by its ``page_id``, or raises an error of ``cache.errors``."""

MAX_CONCURRENT_ITEMS: Final = 64
"""Maximum number of concurrent items. It bounds the memory; the model client limits concurrent requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedItem:
    """One item and the verdict of the judge, which took ``seconds``."""

    item: Item
    verdict: Verdict
    seconds: float | None = None

    @property
    def judge(self) -> bool | None:
        """Whether the judge passed the item; None if it gave no verdict or needed no model."""
        if not self.verdict.votes or self.verdict.outcome not in (Outcome.PASSED, Outcome.FAILED):
            return None
        return self.verdict.outcome is Outcome.PASSED


async def ask_all(
    items: Sequence[Item],
    judge: ClaimJudge,
    *,
    stored: StoredEvidence,
    votes: int,
    done: Callable[[JudgedItem], None] = lambda asked: None,
) -> tuple[JudgedItem, ...]:
    """Ask ``judge`` about every item that is not left out. Returns the verdicts in the order of ``items``.

    ``done`` is called after each item. Model faults raise nothing: the verdict is then ``not_judged``.
    """
    slots = asyncio.Semaphore(MAX_CONCURRENT_ITEMS)

    async def ask(item: Item) -> JudgedItem:
        async with slots:
            started = time.perf_counter()
            verdict = await _ask(item.label, judge, stored, votes)
            judged_item = JudgedItem(item=item, verdict=verdict, seconds=time.perf_counter() - started)
        done(judged_item)
        return judged_item

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(item)) for item in items if item.left_out is None]
    return tuple(task.result() for task in tasks)


async def _ask(label: Label, judge: ClaimJudge, stored: StoredEvidence, votes: int) -> Verdict:
    claim = Claim(text=label.claim or "", sources=label.sources, instruction=label.instruction)
    pages = {canonical_key(page.url): page for page in label.pages}

    async def evidence_for(url: str) -> Evidence:
        return await _evidence(url, pages.get(canonical_key(url)), stored)

    return await judge.settle_any(
        ClaimQuestion(claim=claim, task=label.task, answer=label.answer, trials=votes), evidence_for
    )


async def _evidence(url: str, page: LabelledPage | None, stored: StoredEvidence) -> Evidence:
    """Return exactly the evidence that the person saw.

    Raises:
        CacheError: the evidence is unavailable, or differs from what the person saw.
    """
    if page is None:
        raise _no_evidence(url, "the label lists no page for this URL")
    if page.text is not None:
        evidence = evidence_of(url, page.text)
    elif page.page_id is not None:
        evidence = await stored(page.page_id)
    else:
        raise _no_evidence(url, "the label has neither the text nor the page_id of the page")
    digest = hashlib.sha256(evidence.text.encode("utf-8", "replace")).hexdigest()
    if page.sha256 is not None and digest != page.sha256:
        raise _no_evidence(url, "the SHA-256 of its text differs from the one in the label", CaptureOutcome.CORRUPT)
    return evidence


def _no_evidence(url: str, reason: str, outcome: CaptureOutcome = CaptureOutcome.EMPTY) -> CacheError:
    return NoEvidence(url, outcome, reason, gone=False, capture=None)
