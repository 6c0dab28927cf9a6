"""Settles one claim: shows it to a model beside its evidence, counts votes, and checks the quotes itself.

Faults become lost votes here and, where no majority is left, a verdict of ``not_judged`` with the reason.
Nothing that goes wrong is ever turned into "false".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from cache.errors import CacheError
from cache.evidence import Evidence
from judges.blocks import Separator
from judges.errors import LLMError
from judges.grounding import find_quotes
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.page_view import PagePreparer
from judges.pictures import Transcription, is_all_picture, lacks_quote, picture_quotes
from judges.rendering import Question, Rendered, Style, render_claim, render_transcription
from judges.sources import no_source, together, without_evidence
from judges.standing import Asked
from judges.verdict_reply import BinaryEvalResult
from judges.voting import NO_MAJORITY, decided, to_ask
from rubrics.verdict import Claim, Outcome, Quote, Reason, Usage, Verdict, Vote

log = logging.getLogger(__name__)

EvidenceFor: TypeAlias = Callable[[str], Awaitable[Evidence]]
"""Gives the evidence of a URL or raises an error of ``cache.errors``."""

DEFAULT_TRIALS: Final = 3
MAX_REASONING_CHARS: Final = 4_000
LARGE_TEXT_CHARS: Final = 50_000
"""Answers from this length on are put into blocks in a thread."""


@dataclass(frozen=True, slots=True)
class _Cast:
    """One vote that was cast or lost, and what came with it."""

    vote: Vote
    usage: Usage
    reply: BinaryEvalResult | None = None
    fault: LLMError | None = None


class Verifier:
    """Judges claims with one model. ``params`` are sent with every vote, on top of those of the model's family."""

    def __init__(
        self,
        llm: LLMClient,
        model: str,
        *,
        separator: Separator,
        pages: PagePreparer,
        style: Style = Style.NATIVE,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self._llm = llm
        self.model = model
        self._separator = separator
        self._pages = pages
        self._style = style
        self._params = dict(params or {})

    async def judge(
        self,
        claim: Claim,
        *,
        task: str,
        answer: str,
        evidence: Evidence | None = None,
        trials: int = DEFAULT_TRIALS,
        use_screenshot: bool = True,
    ) -> Verdict:
        """Settle a claim on one page, or without ``evidence`` on the answer alone. ``claim.sources`` is not read.

        Raises:
            ValueError: ``trials`` is not a positive odd number.
        """
        page = None if evidence is None else await self._pages.prepare(evidence, use_screenshot=use_screenshot)
        question = Question(task=task, answer=answer, claim=claim.text, instruction=claim.instruction, page=page)
        rendered = await self._render(question)
        looked_at = await asyncio.to_thread(Asked.of, claim.text, task=task, answer=answer, page=page)
        cast: list[_Cast] = []
        while count := to_ask([each.vote.result for each in cast], trials):
            indices = range(len(cast), len(cast) + count)
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(self._vote(rendered, index)) for index in indices]
            cast += [task.result() for task in asked]
        verdict = self._verdict(cast, trials, rendered, looked_at)
        if self._style is Style.NATIVE and page is not None and lacks_quote(verdict) and is_all_picture(page):
            verdict = await self._transcribed(verdict, question, looked_at)
        log.info("verdict reached", extra={"outcome": verdict.outcome, "reason": verdict.reason, "votes": len(cast)})
        return verdict

    async def judge_any(
        self,
        claim: Claim,
        *,
        task: str,
        answer: str,
        evidence_for: EvidenceFor,
        trials: int = DEFAULT_TRIALS,
        use_screenshot: bool = True,
    ) -> Verdict:
        """Settle a claim by its own ``sources``: none, the answer alone, or any of several pages at once.

        The first page that supports the claim decides and the others are called off.
        """
        if claim.sources is None:
            return await self.judge(claim, task=task, answer=answer, trials=trials)
        if not claim.sources:
            return no_source()

        async def on_page(url: str) -> Verdict:
            try:
                evidence = await evidence_for(url)
            except CacheError as error:
                return without_evidence(error)
            return await self.judge(
                claim, task=task, answer=answer, evidence=evidence, trials=trials, use_screenshot=use_screenshot
            )

        return together(await _until_supported(claim.sources, on_page))

    async def _render(self, question: Question) -> Rendered:
        if len(question.answer) + len(question.task) < LARGE_TEXT_CHARS:
            return render_claim(question, self._separator, self._style)
        return await asyncio.to_thread(render_claim, question, self._separator, self._style)

    async def _vote(self, rendered: Rendered, index: int) -> _Cast:
        request = LLMRequest(
            model=self.model,
            messages=rendered.messages,
            schema=BinaryEvalResult,
            purpose="verify",
            prompt=rendered.prompt,
            vote=index,
            parts=rendered.parts,
            params=self._params,
        )
        try:
            reply = await self._llm.complete(request)
        except LLMError as fault:
            log.warning("vote lost", extra={"reason": fault.reason, "error": str(fault)})
            return _Cast(Vote(result=None, model=self.model, fault=fault.reason), fault.usage, fault=fault)
        said = _read(reply)
        return _Cast(Vote(result=said.result, model=reply.model, cached=reply.cached), reply.usage, said)

    async def _transcribed(self, verdict: Verdict, question: Question, asked: Asked) -> Verdict:
        """The verdict with what one call copied out of the pictures; without it where that fails or says nothing."""
        rendered = render_transcription(question, self._separator)
        request = LLMRequest(
            model=self.model,
            messages=rendered.messages,
            schema=Transcription,
            prompt=rendered.prompt,
            parts=rendered.parts,
            params=self._params,
        )
        try:
            reply = await self._llm.complete(request)
        except LLMError as fault:
            log.warning("picture not transcribed", extra={"reason": fault.reason, "error": str(fault)})
            return replace(verdict, usage=verdict.usage + fault.usage)
        passages = reply.parsed.passages if isinstance(reply.parsed, Transcription) else ()
        quotes = picture_quotes(passages, asked)
        return replace(verdict, quotes=quotes, grounded=asked.grounded(quotes), usage=verdict.usage + reply.usage)

    def _verdict(self, cast: Sequence[_Cast], trials: int, rendered: Rendered, asked: Asked) -> Verdict:
        page = asked.page
        base = Verdict(
            outcome=Outcome.NOT_JUDGED,
            votes=tuple(each.vote for each in cast),
            evidence=() if page is None else page.digests,
            prompt=rendered.prompt,
            model=self.model,
            usage=sum((each.usage for each in cast), Usage()),
            signals=asked.signals(),
        )
        result = decided([each.vote.result for each in cast], trials)
        if result is None or result is NO_MAJORITY:
            reason, reasoning = _why_lost(cast)
            return replace(base, reason=reason, reasoning=reasoning)
        replies = [each.reply for each in cast if each.reply is not None and each.reply.result is result]
        reasoning = replies[0].reasoning[:MAX_REASONING_CHARS]
        if not result:
            return replace(base, outcome=Outcome.FAILED, reason=Reason.REFUTED, reasoning=reasoning)
        quotes = _grounds(replies, asked)
        grounded = asked.grounded(quotes)
        return replace(base, outcome=Outcome.PASSED, reasoning=reasoning, quotes=quotes, grounded=grounded)


def _read(reply: LLMReply) -> BinaryEvalResult:
    """The reply as a vote; clients that know only the public toolkit's two fields are read too."""
    if isinstance(reply.parsed, BinaryEvalResult):
        return reply.parsed
    return BinaryEvalResult.model_validate(reply.parsed, from_attributes=True)


def _why_lost(cast: Sequence[_Cast]) -> tuple[Reason, str]:
    """The reason all votes were lost for if there is just one, otherwise that no majority was left."""
    faults = [each.fault for each in cast if each.fault is not None]
    reasons = {fault.reason for fault in faults}
    reasoning = "\n".join(dict.fromkeys(str(fault) for fault in faults))
    only = reasons.pop() if len(faults) == len(cast) and len(reasons) == 1 else None
    return only or Reason.NO_MAJORITY, reasoning


def _grounds(replies: Sequence[BinaryEvalResult], asked: Asked) -> tuple[Quote, ...]:
    """The quotes of the first supporting vote that quotes the page rightly and to the point."""
    page = asked.page
    if page is None:
        return ()
    for reply in replies:
        found = find_quotes(page.folded, page.text, reply.quotes, page_id=page.page_id, url=page.url)
        quotes = asked.grounds(found)
        if quotes:
            return quotes
    return ()


async def _until_supported(urls: Sequence[str], judge: Callable[[str], Coroutine[Any, Any, Verdict]]) -> list[Verdict]:
    """Judge by all sources side by side until one supports the claim; verdicts in the order of ``urls``."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(judge(url)) for url in urls]
        pending: set[asyncio.Task[Verdict]] = set(tasks)
        supported = False
        while pending and not supported:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            supported = any(not task.cancelled() and _supports(task) for task in done)
        for task in pending:
            task.cancel()
    return [task.result() for task in tasks if not task.cancelled()]


def _supports(task: asyncio.Task[Verdict]) -> bool:
    return task.exception() is None and task.result().outcome is Outcome.PASSED
