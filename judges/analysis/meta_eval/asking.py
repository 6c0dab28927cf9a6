"""Puts labelled claims to a judge: the same claim, the same pages, nothing captured anew.

What keeps a judge from answering is no verdict: the item is then not judged, with the reason.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from cache.capture import CaptureOutcome
from cache.errors import CacheError, NoEvidence
from cache.evidence import Evidence
from cache.urls import canonical_key
from judges.analysis.labels import Label, LabelledPage
from judges.analysis.meta_eval.items import Item
from judges.text_pages import evidence_of
from judges.verifier import ClaimJudge
from rubrics.verdict import Claim, Outcome, Verdict

StoredEvidence: TypeAlias = Callable[[str], Awaitable[Evidence]]
"""Gives the evidence of a stored capture by its ``page_id``, or raises an error of ``cache.errors``."""

AT_ONCE: Final = 64
"""Items under way at a time, which bounds the memory; how many requests that makes is the client's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One item and what a judge said of it now."""

    item: Item
    verdict: Verdict

    @property
    def judge(self) -> bool | None:
        """What the judge itself said; None where it did not: no verdict, or one that needed no model."""
        if not self.verdict.votes or self.verdict.outcome not in (Outcome.PASSED, Outcome.FAILED):
            return None
        return self.verdict.outcome is Outcome.PASSED


async def ask_all(
    items: Sequence[Item],
    judge: ClaimJudge,
    *,
    stored: StoredEvidence,
    votes: int,
    done: Callable[[Asked], None] = lambda asked: None,
) -> tuple[Asked, ...]:
    """Put every item that is not left out to ``judge``; in the order of ``items``. ``done`` is told of each.

    Raises:
        LLMError: never; a fault of the model is a verdict of ``not_judged``.
    """
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(item: Item) -> Asked:
        async with room:
            asked = Asked(item=item, verdict=await _ask(item.label, judge, stored, votes))
        done(asked)
        return asked

    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(ask(item)) for item in items if item.left_out is None]
    return tuple(task.result() for task in asking)


async def _ask(label: Label, judge: ClaimJudge, stored: StoredEvidence, votes: int) -> Verdict:
    claim = Claim(text=label.claim or "", sources=label.sources, instruction=label.instruction)
    pages = {canonical_key(page.url): page for page in label.pages}

    async def evidence_for(url: str) -> Evidence:
        return await _evidence(url, pages.get(canonical_key(url)), stored)

    return await judge.judge_any(claim, task=label.task, answer=label.answer, evidence_for=evidence_for, trials=votes)


async def _evidence(url: str, page: LabelledPage | None, stored: StoredEvidence) -> Evidence:
    """What the person was shown of a page, and nothing else.

    Raises:
        CacheError: it cannot be had, or is not what the person saw.
    """
    if page is None:
        raise _not_had(url, "the label does not say what was seen there")
    if page.text is not None:
        found = evidence_of(url, page.text)
    elif page.page_id is not None:
        found = await stored(page.page_id)
    else:
        raise _not_had(url, "the label gives neither the page's text nor its page_id")
    digest = hashlib.sha256(found.text.encode("utf-8", "replace")).hexdigest()
    if page.sha256 is not None and digest != page.sha256:
        raise _not_had(url, "its text is not the one that the label names", CaptureOutcome.CORRUPT)
    return found


def _not_had(url: str, why: str, outcome: CaptureOutcome = CaptureOutcome.EMPTY) -> CacheError:
    return NoEvidence(url, outcome, why, gone=False, capture=None)
