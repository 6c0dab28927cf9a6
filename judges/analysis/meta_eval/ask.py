"""Judging of labelled claims with their recorded pages. Nothing is captured.

A fault is not a verdict: the item becomes ``not_judged`` with the reason.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from cache.capture import CaptureOutcome, Evidence
from cache.errors import CacheError, NoEvidence
from cache.urls import canonical_key
from judges.analysis.labels import Label, LabelledPage
from judges.analysis.meta_eval.items import Item
from judges.trial import evidence_of
from judges.verifier import ClaimJudge
from rubrics.verdict import Claim, Outcome, Verdict

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

    return await judge.judge_any(claim, task=label.task, answer=label.answer, evidence_for=evidence_for, trials=votes)


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
