"""Verification of one claim by majority vote of a model.

The model is shown the claim with its evidence. Code, not the model, checks the quotes. A fault costs one vote. If the
remaining votes have no majority, the verdict is ``not_judged`` with the reason, never "failed".

A jury of models is a claim judge, too. It combines the verdicts of its members. A member that could not judge a claim
counts for neither side, see ``judges.voting.jury_verdict``.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from cache.capture import CaptureSource, Evidence
from cache.errors import CacheError
from judges.cpu_bound import run_cpu_bound
from judges.errors import LLMError, ReplyNotCached, ShorterPage, UnusableKind
from judges.grounding.quotes import find_quotes, needs_whole_sentence
from judges.grounding.support import (
    TOO_LONG,
    ClaimGrounds,
    Transcription,
    is_all_picture,
    lacks_quote,
    picture_quotes,
    unseen_part,
    unseen_reasoning,
)
from judges.llm.client import LLMReply, LLMRequest
from judges.llm.lexical import MAX_CHARS
from judges.llm.lexical import MODEL as LEXICAL
from judges.llm.remote import repair_request
from judges.prompting.page_view import PreparedPage
from judges.prompting.rendering import (
    BinaryEvalResult,
    PromptedModel,
    Question,
    Rendered,
    Style,
    render_claim,
    render_transcription,
)
from judges.source_policy import check_of, combine_checks, combine_verdicts, no_source_verdict, verdict_without_evidence
from judges.voting import NO_MAJORITY, decide_votes, jury_verdict, members_in, votes_needed
from rubrics.scoring import counts_strictly
from rubrics.verdict import Claim, MemberVerdict, ModelRequest, Outcome, Quote, Reason, Usage, Verdict, Vote

log = logging.getLogger(__name__)

EvidenceLookup: TypeAlias = Callable[[str], Awaitable[Evidence]]
"""Returns the evidence of a URL or raises an error of ``cache.errors``."""

DEFAULT_TRIALS: Final = 3
MAX_REASONING_CHARS: Final = 4_000
PICTURES_NOT_SHOWN: Final = "pictures_not_shown"
"""Signal on a verdict that was reached on text alone because the model does not accept images."""


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """One vote, cast or lost, with its cost and reply. ``other`` is a second request for the same vote."""

    vote: Vote
    usage: Usage
    reply: BinaryEvalResult | None = None
    fault: LLMError | None = None
    text_only: bool = False
    shorter_page: ShorterPage | None = None
    other: ModelRequest | None = None

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        own = ModelRequest(key=self.vote.request, usage=self.usage)
        return (own,) if self.other is None else (own, self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimQuestion:
    """Claim to settle on one page, or on the answer alone if ``evidence`` is None.

    ``settle`` ignores the ``sources`` of the claim, ``settle_any`` the ``evidence``.

    ``trials`` is the number of votes: positive and odd. With ``cache_only``, only cached replies are used.
    """

    claim: Claim
    task: str
    answer: str
    evidence: Evidence | None = None
    trials: int = DEFAULT_TRIALS
    use_screenshot: bool = True
    cache_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownClaim(Question):
    """Claim as it is shown to the model, with the number of its votes."""

    trials: int
    cache_only: bool


class ClaimJudge(ABC):
    """Base class of claim judges. Subclasses send requests to ``model`` directly or through another process."""

    model: str
    style: Style

    @abstractmethod
    async def settle(self, question: ClaimQuestion) -> Verdict:
        """Return the verdict.

        Raises:
            ReplyNotCached: the question is ``cache_only``, and a reply is not cached.
            ValueError: ``trials`` is not a positive odd number.
        """

    async def before_result(self) -> None:
        """Awaited when all claims of a rubric are settled: building its result takes milliseconds."""
        return

    async def settle_any(self, question: ClaimQuestion, evidence_for: EvidenceLookup) -> Verdict:
        """Settle a claim on its ``sources``: None means the answer alone, several mean any of these pages.

        The pages are judged concurrently. The first page that supports the claim with a quote that code found decides,
        and the other requests are cancelled. Replies in the style of the public toolkit have no quotes: there, the
        first page that supports the claim decides. Pages that cached replies can decide come first, so that a rerun
        does not pay for requests that were cancelled the first time.
        """
        claim = question.claim
        if claim.sources is None:
            verdict = await self.settle(question)
            return replace(verdict, checks=(check_of(None, verdict),))
        if not claim.sources:
            return no_source_verdict()

        async def on_page(url: str, *, cache_only: bool = False) -> Verdict | None:
            try:
                verdict = await self.settle_on(url, replace(question, cache_only=cache_only), evidence_for)
            except CacheError as error:
                verdict = verdict_without_evidence(error)
            except ReplyNotCached:
                return None
            return replace(verdict, checks=(check_of(url, verdict),))

        urls = dict(enumerate(claim.sources))
        verdicts: dict[int, Verdict] = {}
        if len(urls) > 1:
            verdicts = await _until_decided(urls, lambda url: on_page(url, cache_only=True), self._decides)
        if not any(map(self._decides, verdicts.values())):
            remaining = {index: url for index, url in urls.items() if index not in verdicts}
            verdicts |= await _until_decided(remaining, on_page, self._decides)
        return combine_verdicts([verdicts[index] for index in sorted(verdicts)])

    def _decides(self, verdict: Verdict) -> bool:
        """Return whether the verdict on one source decides the claim."""
        is_strict = counts_strictly(verdict)
        return verdict.outcome is Outcome.PASSED and (is_strict or self.style is Style.COMPAT)

    async def settle_on(self, url: str, question: ClaimQuestion, evidence_for: EvidenceLookup) -> Verdict:
        """Return the verdict on the page of a URL. Raises the errors of ``evidence_for`` and ``settle``."""
        return await self.settle(replace(question, evidence=await evidence_for(url)))


class Verifier(PromptedModel, ClaimJudge):
    """Claim judge that asks one model."""

    async def settle(self, question: ClaimQuestion) -> Verdict:
        claim, evidence, page = question.claim, question.evidence, None
        if evidence is not None:
            page = await self._pages.prepare(evidence, use_screenshot=question.use_screenshot)
        shown = ShownClaim(
            task=question.task,
            answer=question.answer,
            claim=claim.text,
            instruction=claim.instruction,
            page=page,
            trials=question.trials,
            cache_only=question.cache_only,
        )
        verdict = await self._judge_question(shown)
        is_supplied = evidence is not None and evidence.capture.source is CaptureSource.SUPPLIED
        return replace(verdict, supplied=True) if is_supplied else verdict

    async def _judge_question(self, question: ShownClaim) -> Verdict:
        """Return the verdict on a question. A page that is too long for one request is judged in parts.

        Public scripts are shown its beginning only, as by the public toolkit.

        Raises:
            ReplyNotCached: the question is ``cache_only``, and a reply is not cached.
        """
        page = question.page
        max_chars = MAX_CHARS if self.model == LEXICAL else None
        is_long = page is not None and (page.is_cut or (max_chars is not None and len(page.text) > max_chars))
        if page is not None and is_long and self.style is Style.NATIVE:
            return await self._judge_parts(question, page, max_chars)
        verdict, max_chars = await self._judge_shown(question)
        if page is None or max_chars is None or self.style is Style.COMPAT:
            return verdict
        if verdict.reason is not Reason.PAGE_NOT_FULLY_SEEN:
            return verdict
        in_parts = await self._judge_parts(question, page, max_chars)
        return replace(in_parts, usage=verdict.usage + in_parts.usage, requests=(*verdict.requests, *in_parts.requests))

    async def _judge_parts(self, question: ShownClaim, page: PreparedPage, max_chars: int | None) -> Verdict:
        """Return the verdict on a long page, shown in parts of at most ``max_chars`` characters (None: no limit).

        The parts are judged one after the other until one supports the claim with a quote that code found. The claim
        is refuted only if none supports it and they are the whole page.
        """
        parts, is_whole = await self._pages.parts(page, question.claim, max_chars=max_chars)
        verdicts: list[Verdict] = []
        for part in parts:
            shown = await self._pages.prepare_part(page, part, use_screenshot=not verdicts)
            verdict, _ = await self._judge_shown(replace(question, page=shown))
            spans = [part.locate(quote.start, quote.end) for quote in verdict.quotes]
            quotes = tuple(
                replace(quote, text=page.text[start:end], start=start, end=end)
                for quote, (start, end) in zip(verdict.quotes, spans, strict=True)
            )
            verdicts.append(replace(verdict, quotes=quotes))
            was_asked = verdict.outcome is not Outcome.NOT_JUDGED or verdict.reason is Reason.PAGE_NOT_FULLY_SEEN
            if self._decides(verdict) or not was_asked:
                break
        combined = replace(
            combine_verdicts(verdicts),
            usage=sum((verdict.usage for verdict in verdicts), Usage()),
            requests=tuple(request for verdict in verdicts for request in verdict.requests),
            unneeded=(),
        )
        return self._if_seen(combined, "" if is_whole else TOO_LONG)

    async def _judge_shown(self, question: ShownClaim) -> tuple[Verdict, int | None]:
        """Return the verdict on what the page of a question shows.

        Also return the number of characters that the model was sent of it if the provider rejected more, else None.
        """
        page = question.page
        rendered = await run_cpu_bound(
            lambda: render_claim(question, self._block_builder, self.style), question.answer, question.task
        )
        votes = await self._votes(rendered, question)
        search_page = self._needs_quotes(votes, question.trials)

        def ground() -> tuple[ClaimGrounds, Verdict]:
            grounds = ClaimGrounds.of(
                question.claim, task=question.task, answer=question.answer, page=page, search_page=search_page
            )
            return grounds, self._verdict(votes, question.trials, rendered, grounds)

        if search_page:
            grounds, verdict = await self._pages.run_page_check(ground, page)
        else:
            grounds, verdict = await run_cpu_bound(ground, question.claim, question.task, question.answer)
        if self.style is Style.NATIVE and page is not None and lacks_quote(verdict) and is_all_picture(page):
            verdict = await self._transcribed(verdict, question, grounds)
        if page is None:
            return verdict, None
        text_only = self.model == LEXICAL or any(vote.text_only for vote in votes)
        page_chars = min((vote.shorter_page.page_chars for vote in votes if vote.shorter_page), default=None)
        unseen = unseen_part(page, text_only=text_only, shortened=page_chars is not None)
        return self._if_seen(verdict, unseen), page_chars

    def _if_seen(self, verdict: Verdict, unseen: str) -> Verdict:
        """Return the verdict, as not judged if the judge did not see all of the page and the verdict may depend on it.

        The unseen part can support a claim that the seen part does not support. A supported claim with a quote that
        code found does not depend on it. Replies in the style of the public toolkit have no quotes. ``unseen`` is the
        reason, or empty.
        """
        needs_quote = self.style is Style.NATIVE and verdict.grounded is False
        if not unseen or not (verdict.outcome is Outcome.FAILED or needs_quote):
            return verdict
        return replace(
            verdict,
            outcome=Outcome.NOT_JUDGED,
            reason=Reason.PAGE_NOT_FULLY_SEEN,
            reasoning=unseen_reasoning(unseen, verdict.reasoning)[:MAX_REASONING_CHARS],
            grounded=None,
        )

    async def _votes(self, rendered: Rendered, question: ShownClaim) -> list[VoteRecord]:
        """Collect votes until they decide. Votes that are needed in any case are requested concurrently."""
        votes: list[VoteRecord] = []
        while count := votes_needed([self._counted(vote) for vote in votes], question.trials):
            indices = range(len(votes), len(votes) + count)
            if question.cache_only:
                # Sequential, because cached replies need no waiting. The ExceptionGroup of a TaskGroup would create a
                # reference cycle that keeps the page in memory until the next garbage collection.
                votes += [await self._vote(rendered, question, index) for index in indices]
                continue
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._vote(rendered, question, index)) for index in indices]
            votes += [task.result() for task in tasks]
        return votes

    def _counted(self, vote: VoteRecord) -> bool | None:
        """Return how a vote counts when it is decided whether further votes are needed."""
        return vote.vote.result

    def _needs_quotes(self, votes: Sequence[VoteRecord], trials: int) -> bool:
        """Whether code must search the page for quotes. It need not if the verdict relies on no quote.

        The native prompt asks for quotes, so their absence must be examined. The public toolkit's reply has no quotes.
        """
        if decide_votes([vote.vote.result for vote in votes], trials) is not True:
            return False
        return self.style is Style.NATIVE or any(vote.reply is not None and vote.reply.quotes for vote in votes)

    async def _vote(self, rendered: Rendered, question: ShownClaim, index: int) -> VoteRecord:
        """Return one vote. If its quotes leave out a negation of their sentences, it is asked for once more.

        The second reply counts, also with a quote that is refused again. If there is none, the first one counts.
        """
        request = rendered.request(
            self.model,
            BinaryEvalResult,
            purpose="verify",
            vote=index,
            params=self._params,
            cache_only=question.cache_only,
        )
        first = await self._cast(request)
        if not await self._is_cut(first, question.page):
            return first
        second = await self._cast(repair_request(request, UnusableKind.CUT_QUOTE))
        counted, other = (second, first) if second.fault is None else (first, second)
        return replace(counted, other=ModelRequest(key=other.vote.request, usage=other.usage))

    async def _is_cut(self, vote: VoteRecord, page: PreparedPage | None) -> bool:
        """Return whether a vote supports the claim with no quote but such that leave out a negation."""
        reply = vote.reply
        if self.style is not Style.NATIVE or page is None or reply is None or not reply.result or not reply.quotes:
            return False
        return await self._pages.run_page_check(
            lambda: needs_whole_sentence(page.index.folded, reply.quotes, url=page.url), page
        )

    async def _cast(self, request: LLMRequest) -> VoteRecord:
        try:
            reply = await self._llm.complete(request)
        except LLMError as fault:
            log.warning("vote lost", extra={"model": self.model, "reason": fault.reason, "error": str(fault)})
            lost_vote = Vote(result=None, model=self.model, fault=fault.reason, request=fault.key)
            return VoteRecord(lost_vote, fault.usage, fault=fault, shorter_page=fault.shorter_page)
        parsed = _parsed_vote(reply)
        vote = Vote(result=parsed.result, model=reply.model, cached=reply.cached, request=reply.key)
        return VoteRecord(vote, reply.usage, parsed, text_only=reply.text_only, shorter_page=reply.shorter_page)

    async def _transcribed(self, verdict: Verdict, question: ShownClaim, grounds: ClaimGrounds) -> Verdict:
        """Return the verdict with quotes that one extra request transcribed from the screenshots.

        If that request fails or finds nothing, the verdict has no such quotes.
        """
        rendered = render_transcription(question, self._block_builder)
        request = rendered.request(self.model, Transcription, params=self._params, cache_only=question.cache_only)
        try:
            reply = await self._llm.complete(request)
        except LLMError as fault:
            log.warning("picture not transcribed", extra={"reason": fault.reason, "error": str(fault)})
            return _with_request(verdict, fault.key, fault.usage)
        passages = reply.parsed.passages if isinstance(reply.parsed, Transcription) else ()
        quotes = picture_quotes(passages, grounds)
        verdict = replace(verdict, quotes=quotes, grounded=grounds.grounded(quotes))
        return _with_request(verdict, reply.key, reply.usage)

    def _verdict(self, votes: Sequence[VoteRecord], trials: int, rendered: Rendered, grounds: ClaimGrounds) -> Verdict:
        page = grounds.page
        requests = tuple(request for vote in votes for request in vote.requests)
        base = Verdict(
            outcome=Outcome.NOT_JUDGED,
            votes=tuple(vote.vote for vote in votes),
            evidence=() if page is None else page.digests,
            prompt=rendered.prompt,
            model=self.model,
            usage=sum((request.usage for request in requests), Usage()),
            requests=requests,
            signals=_signals(votes, grounds),
        )
        result = decide_votes([vote.vote.result for vote in votes], trials)
        if result is None or result is NO_MAJORITY:
            reason, reasoning = _loss_reason(votes)
            return replace(base, reason=reason, reasoning=reasoning)
        replies = [vote.reply for vote in votes if vote.reply is not None and vote.reply.result is result]
        reasoning = replies[0].reasoning[:MAX_REASONING_CHARS]
        if not result:
            return replace(base, outcome=Outcome.FAILED, reason=Reason.REFUTED, reasoning=reasoning)
        quotes = _supporting_quotes(replies, grounds)
        grounded = grounds.grounded(quotes)
        return replace(base, outcome=Outcome.PASSED, reasoning=reasoning, quotes=quotes, grounded=grounded)


class PageOnlyVerifier(Verifier):
    """Claim judge that judges claims on a page without the answer.

    Equal claims of different answers are then equal requests, which share their replies, and no answer can influence
    the verdict on a page. Claims must be understandable without the answer.
    """

    async def settle(self, question: ClaimQuestion) -> Verdict:
        shown = question if question.evidence is None else replace(question, answer="")
        return await super().settle(shown)


def _signals(votes: Sequence[VoteRecord], grounds: ClaimGrounds) -> tuple[str, ...]:
    """Return the signals of the material, plus ``PICTURES_NOT_SHOWN`` if a vote saw text only."""
    signals = grounds.signals()
    return tuple(sorted({*signals, PICTURES_NOT_SHOWN})) if any(vote.text_only for vote in votes) else signals


def _with_request(verdict: Verdict, key: str, usage: Usage) -> Verdict:
    """Return the verdict with one more request added to its record and usage."""
    requests = (*verdict.requests, ModelRequest(key=key, usage=usage))
    return replace(verdict, usage=verdict.usage + usage, requests=requests)


def _parsed_vote(reply: LLMReply) -> BinaryEvalResult:
    """Return the reply as a vote. A reply with only the public toolkit's two fields is accepted too."""
    if isinstance(reply.parsed, BinaryEvalResult):
        return reply.parsed
    return BinaryEvalResult.model_validate(reply.parsed, from_attributes=True)


def _loss_reason(votes: Sequence[VoteRecord]) -> tuple[Reason, str]:
    """Return the common reason of all lost votes, or ``NO_MAJORITY`` if there is none, and the messages."""
    faults = [vote.fault for vote in votes if vote.fault is not None]
    reasons = {fault.reason for fault in faults}
    reasoning = "\n".join(dict.fromkeys(str(fault) for fault in faults))
    only = reasons.pop() if len(faults) == len(votes) and len(reasons) == 1 else None
    return only or Reason.NO_MAJORITY, reasoning


def _supporting_quotes(replies: Sequence[BinaryEvalResult], grounds: ClaimGrounds) -> tuple[Quote, ...]:
    """Return the quotes of the first supporting vote whose quotes are in the page and count as grounds."""
    page = grounds.page
    if page is None or not grounds.search_page:
        return ()
    for reply in replies:
        located = find_quotes(page.index.folded, page.text, reply.quotes, page_id=page.page_id, url=page.url)
        quotes = grounds.usable_quotes(located)
        if quotes:
            return quotes
    return ()


async def _until_decided(
    urls: Mapping[int, str],
    judge: Callable[[str], Coroutine[Any, Any, Verdict | None]],
    decides: Callable[[Verdict], bool],
) -> dict[int, Verdict]:
    """Judge all sources concurrently until one decides the claim. Return the verdicts reached, by place.

    Raises:
        asyncio.CancelledError: what a source waited for was cancelled, for example because its page cache was closed.
    """
    async with asyncio.TaskGroup() as group:
        tasks = {index: group.create_task(_without_traceback(judge(url))) for index, url in urls.items()}
        pending: set[asyncio.Task[Verdict | None]] = set(tasks.values())
        decided = False
        while pending and not decided:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            verdicts = [task.result() for task in done if not task.cancelled() and task.exception() is None]
            decided = any(verdict is not None and decides(verdict) for verdict in verdicts)
        for task in pending:
            task.cancel()
    if any(task.cancelled() for task in tasks.values() if task not in pending) and not decided:
        raise asyncio.CancelledError  # a task group ignores it
    reached = {index: task.result() for index, task in tasks.items() if not task.cancelled()}
    return {index: verdict for index, verdict in reached.items() if verdict is not None}


async def _without_traceback(judging: Coroutine[Any, Any, Verdict | None]) -> Verdict | None:
    """Await ``judging``; if it is cancelled, re-raise without the traceback.

    Up to Python 3.12, the frames of a TaskGroup reference the error and the error references the frames. This cycle
    would keep the page in memory until the next garbage collection.
    """
    try:
        return await judging
    except asyncio.CancelledError as cancelled:
        raise cancelled.with_traceback(None) from None


_SIDES = {Outcome.PASSED: True, Outcome.FAILED: False}


def judge_named(name: str, judge_of: Callable[[str], ClaimJudge]) -> ClaimJudge:
    """Return the judge of a model, or of a jury (``a,b,c``) whose members ``judge_of`` creates."""
    members = members_in(name)
    if len(members) == 1:
        return judge_of(name)
    return JuryJudge(name, [judge_of(member) for member in members])


class JuryJudge(ClaimJudge):
    """Claim judge that asks all members of a jury concurrently. ``name`` is that of the jury."""

    def __init__(self, name: str, members: Sequence[ClaimJudge]) -> None:
        self.model = name
        self._members = members

    async def settle(self, question: ClaimQuestion) -> Verdict:
        return await self._combined(lambda member: member.settle(question))

    async def settle_any(self, question: ClaimQuestion, evidence_for: EvidenceLookup) -> Verdict:
        """Settle a claim as the base class does. Each member decides about all sources, not the jury about each."""
        return await self._combined(lambda member: member.settle_any(question, evidence_for))

    async def before_result(self) -> None:
        await self._members[0].before_result()

    async def _combined(self, ask: Callable[[ClaimJudge], Coroutine[Any, Any, Verdict]]) -> Verdict:
        verdicts = await asyncio.gather(*(ask(member) for member in self._members), return_exceptions=True)
        for verdict in verdicts:
            if isinstance(verdict, BaseException):
                raise verdict
        given = [verdict for verdict in verdicts if isinstance(verdict, Verdict)]
        return combine_members(self.model, [member.model for member in self._members], given)


def combine_members(jury: str, models: Sequence[str], verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of a jury from those of its members, in their order.

    Reasoning, prompt and quotes are those of a member of the winning side: the first whose quotes were found, else the
    first. If no model decided (no source, no page), the verdicts are equal and the first is returned.
    """
    if all(verdict.model is None for verdict in verdicts):
        return verdicts[0]
    decided = jury_verdict([_SIDES.get(verdict.outcome) for verdict in verdicts])
    winners = [verdict for verdict in verdicts if _SIDES.get(verdict.outcome) is decided and decided is not None]
    deciding = next((verdict for verdict in winners if verdict.grounded), winners[0] if winners else None)
    outcome = Outcome.NOT_JUDGED if deciding is None else deciding.outcome
    asked = next(verdict for verdict in verdicts if verdict.model is not None)
    return Verdict(
        outcome=outcome,
        reason=_shared_reason(verdicts) if deciding is None else deciding.reason,
        reasoning=_losses(models, verdicts) if deciding is None else deciding.reasoning,
        votes=tuple(vote for verdict in verdicts for vote in verdict.votes),
        quotes=() if deciding is None else deciding.quotes,
        evidence=tuple(dict.fromkeys(digest for verdict in verdicts for digest in verdict.evidence)),
        prompt=(deciding and deciding.prompt) or asked.prompt,
        model=jury,
        usage=sum((verdict.usage for verdict in verdicts), Usage()),
        requests=tuple(request for verdict in verdicts for request in verdict.requests),
        unneeded=tuple(request for verdict in verdicts for request in verdict.unneeded),
        grounded=None if deciding is None else deciding.grounded,
        checks=combine_checks([verdict.checks for verdict in (winners or verdicts)], passed=outcome is Outcome.PASSED),
        signals=tuple(sorted({signal for verdict in verdicts for signal in verdict.signals})),
        supplied=any(verdict.supplied for verdict in winners or verdicts),
        members=tuple(
            MemberVerdict(model=model, outcome=one.outcome, reason=one.reason, reasoning=one.reasoning)
            for model, one in zip(models, verdicts, strict=True)
        ),
    )


def _shared_reason(verdicts: Sequence[Verdict]) -> Reason:
    """Return the common reason of all members without a verdict if no member has one, else ``NO_MAJORITY``."""
    reasons = {verdict.reason for verdict in verdicts}
    only = reasons.pop() if len(reasons) == 1 else None
    return only or Reason.NO_MAJORITY


def _losses(models: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    """Return what the members without a verdict report."""
    lost = [(model, one) for model, one in zip(models, verdicts, strict=True) if one.outcome not in _SIDES]
    return "\n".join(f"{model}: {one.reasoning or one.reason}" for model, one in lost)
