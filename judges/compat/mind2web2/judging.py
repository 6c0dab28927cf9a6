"""Claim judges and extractors for public scripts, with the public toolkit's rules for votes that are lost.

A *content fault* is a request that the model did not answer because of what it contains: a refusal, a content filter, a
truncated or unstructured reply, a page that is too long. In the compatible number it is one failed vote. In our own
reading it is a lost vote, so that the claim is not judged unless the other votes decide it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cache.capture import Evidence
from judges.errors import ExtractionFailed, LLMError, LLMOutputUnusable, LLMRejected
from judges.extractor import ExtractionQuestion, ExtractionReply, Extractor
from judges.llm.json_schema import ReplyType
from judges.prompting.rendering import Rendered
from judges.verifier import ClaimQuestion, ShownClaim, Verifier, VoteRecord
from rubrics.verdict import ModelRequest, Outcome, Reason, Usage, Verdict

NOT_SHOWN: Final = "the page was too long for the model: its beginning does not support the claim"


def is_content_fault(error: BaseException | None) -> bool:
    """Return whether a request failed because of its content, and not because the judge cannot be asked."""
    return isinstance(error, LLMOutputUnusable) or _is_too_long(error)


def _is_too_long(error: BaseException | None) -> bool:
    return isinstance(error, LLMRejected) and error.too_long


class StrictVerifier(Verifier):
    """Verifier that gives no verdict if a vote is lost, except to a content fault: that counts as a failed vote."""

    def _counted(self, vote: VoteRecord) -> bool | None:
        return False if is_content_fault(vote.fault) else vote.vote.result

    def _verdict(self, votes: Sequence[VoteRecord], *args: Any) -> Verdict:
        verdict = super()._verdict(votes, *args)
        faults = [vote.fault for vote in votes if vote.fault is not None]
        outages = [fault for fault in faults if not is_content_fault(fault)]
        if not faults or (verdict.outcome is not Outcome.NOT_JUDGED and not outages):
            return verdict
        reason = (outages or faults)[0].reason or Reason.NO_MAJORITY
        if any(map(_is_too_long, faults)):
            verdict = replace(verdict, votes=())  # it was not asked about the whole page
        return replace(verdict, outcome=Outcome.NOT_JUDGED, reason=reason, quotes=(), grounded=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRules:
    """What follows from content faults of one check or extraction."""

    max_shrinks: int
    """How often a page is halved that is too long for the model."""
    shorten: Callable[[Evidence, int], Evidence]
    """Return a page whose text was halved so many times. CPU-bound."""
    reject: Callable[[str | None, str], None]
    """Record a rejected request: URL of the page, if any, and reason."""


class _PageTooLong(Exception):
    """The model rejected a request as too long. Has the votes that were cast beside it."""

    def __init__(self, fault: LLMError, votes: Sequence[VoteRecord]) -> None:
        super().__init__(str(fault))
        self.usage = sum((vote.usage for vote in votes), Usage())
        self.requests = tuple(ModelRequest(key=vote.vote.request, usage=vote.usage) for vote in votes)


class DirectVerifier(StrictVerifier):
    """Verifier for a client that neither shortens pages nor records rejections itself."""

    def __init__(self, *args: Any, content: ContentRules, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._content = content

    async def settle(self, question: ClaimQuestion) -> Verdict:
        """Return the verdict on the page, or on its first half or quarter if the model rejects more as too long."""
        whole, times = question.evidence, 0
        before = Verdict(outcome=Outcome.NOT_JUDGED)
        while True:
            try:
                verdict = await super().settle(question)
                break
            except _PageTooLong as error:
                before = _with_cost(before, error.usage, error.requests)
                if whole is None or times >= self._content.max_shrinks:
                    self._content.reject(None if whole is None else whole.capture.url, str(error))
                    return replace(before, reason=Reason.LLM_REJECTED, reasoning=str(error), model=self.model)
            times += 1
            question = replace(question, evidence=await asyncio.to_thread(self._content.shorten, whole, times))
        if times and verdict.outcome is Outcome.FAILED:
            verdict = replace(verdict, outcome=Outcome.NOT_JUDGED, reason=Reason.LLM_REJECTED, reasoning=NOT_SHOWN)
        return _with_cost(verdict, before.usage, before.requests)

    async def _votes(self, rendered: Rendered, question: ShownClaim) -> list[VoteRecord]:
        votes = await super()._votes(rendered, question)
        faults = [vote.fault for vote in votes if vote.fault is not None]
        for fault in faults:
            if _is_too_long(fault):
                raise _PageTooLong(fault, votes)
        for fault in faults:
            if is_content_fault(fault):
                self._content.reject(None if question.page is None else question.page.url, str(fault))
        return votes


class DirectExtractor(Extractor):
    """Extractor for a client that neither shortens pages nor records rejections itself."""

    def __init__(self, *args: Any, content: ContentRules, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._content = content

    async def ask(self, schema: ReplyType, question: ExtractionQuestion) -> ExtractionReply:
        whole, times, cost = question.evidence, 0, Usage()
        while True:
            try:
                found = await super().ask(schema, question)
                break
            except ExtractionFailed as error:
                error.usage = cost = cost + error.usage
                if whole is None or times >= self._content.max_shrinks or not _is_too_long(error.__cause__):
                    if is_content_fault(error.__cause__):
                        self._content.reject(None if whole is None else whole.capture.url, str(error))
                    raise
            times += 1
            question = replace(question, evidence=await asyncio.to_thread(self._content.shorten, whole, times))
        return replace(found, reply=replace(found.reply, usage=cost + found.reply.usage))


def with_text(page: Evidence, text: str) -> Evidence:
    """Return a page with another text, as a different page for the memory of prepared pages."""
    digest = hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()
    return replace(page, text=text, digests=(digest, *page.digests[1:]))


def _with_cost(verdict: Verdict, usage: Usage, requests: tuple[ModelRequest, ...]) -> Verdict:
    return replace(verdict, usage=usage + verdict.usage, requests=(*requests, *verdict.requests))
