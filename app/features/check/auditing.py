"""Verdicts on the claims that cite one page.

A model gets all claims of a page in a few requests. Without a model, the lexical judge decides each claim. Code finds
the quotes in the page and the unsupported words in the report.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import BaseModel, Field

from answers.binding import Binding, Source
from app.features.check.report import (
    ClaimOutcome,
    ClaimVerdict,
    ClosestPassage,
    MemberOutcome,
    PageQuote,
    Span,
)
from app.features.check.statements import Claim, ClaimedStatement, ReportStatement, find_words
from cache.capture import Evidence
from cache.urls import canonical_key
from judges.cpu_bound import run_cpu_bound
from judges.errors import LLMError, LLMOutputUnusable, UnusableKind
from judges.grounding.quotes import find_quotes, needs_whole_sentence
from judges.grounding.support import TOO_LONG, ClaimGrounds, unseen_part, unseen_reasoning
from judges.grounding.term_overlap import absent_words, closest_passage, missing_terms
from judges.llm.client import LLMClient, LLMRequest
from judges.llm.providers import LEXICAL, JudgeName, ModelName
from judges.llm.remote import repair_request
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePart, PagePreparer, PreparedPage
from judges.prompting.rendering import render_texts
from judges.verifier import ClaimQuestion, Verifier
from judges.voting import jury_verdict
from rubrics.verdict import Claim as JudgedClaim
from rubrics.verdict import Outcome, Quote, Reason, Verdict

log = logging.getLogger(__name__)

CLAIMS_PER_REQUEST: Final = 12
_MAX_REASONING_CHARS: Final = 2_000
_MAX_STATEMENT_CHARS: Final = 1_000
_MAX_UNSUPPORTED: Final = 10
_MAX_SEARCHED_CHARS: Final = 1_000_000
"""Characters that are searched for the closest passages of one request, about a second of CPU time."""
_SHORT_PAGE_CHARS: Final = 16_000
"""Shorter texts are searched in the event loop, in 15 ms."""

DECIDING_ORDER: Final = (
    ClaimOutcome.SUPPORTED,
    ClaimOutcome.CONTRADICTED,
    ClaimOutcome.NOT_JUDGED,
    ClaimOutcome.UNREADABLE,
    ClaimOutcome.PARTLY_SUPPORTED,
    ClaimOutcome.NOT_SUPPORTED,
)
"""Which verdict decides a claim that has several, on its sources or on the parts of a page. One that was not judged
could support the claim."""

_UNMET: Final = frozenset({ClaimOutcome.PARTLY_SUPPORTED, ClaimOutcome.CONTRADICTED, ClaimOutcome.NOT_SUPPORTED})
_JUDGED: Final = _UNMET | {ClaimOutcome.SUPPORTED}

ModelVerdict = Literal["supported", "partly_supported", "contradicted", "not_supported"]


class AuditedClaim(BaseModel):
    number: int
    verdict: ModelVerdict
    reasoning: str
    quotes: list[str] = Field(default_factory=list)
    unsupported: list[str] = Field(default_factory=list)


class PageAudit(BaseModel):
    """Reply to the prompt ``audit_page``."""

    claims: list[AuditedClaim]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageClaim:
    """Claim to decide on a page. ``index`` identifies it among all pairs of claim and source of the report."""

    index: int
    source: int
    claim: Claim
    statement: ReportStatement


def page_claims(claimed: Sequence[ClaimedStatement]) -> list[PageClaim]:
    """Return all pairs of claim and source of the statements."""
    pairs = [(source, claim, one) for one in claimed for claim in one.claims for source in one.statement.sources]
    return [
        PageClaim(index=index, source=source, claim=claim, statement=one.statement)
        for index, (source, claim, one) in enumerate(pairs)
    ]


def by_page(binding: Binding, claims: Iterable[PageClaim]) -> dict[str | None, list[PageClaim]]:
    """Return the claims by the key of their page, in text order; those of sources without a whole URL by None."""
    grouped: dict[str | None, list[PageClaim]] = {}
    for one in claims:
        source = binding.sources[one.source]
        grouped.setdefault(page_key(source), []).append(one)
    return grouped


def page_key(source: Source) -> str | None:
    """Return the key of the page of a source; None if it has no URL, or only the beginning of one."""
    return None if source.url is None or source.truncated else canonical_key(source.url)


def without_verdict(asked: PageClaim, outcome: ClaimOutcome, reason: str | None, reasoning: str) -> ClaimVerdict:
    """Return the record of a claim on which there is no verdict, or whose source is gone."""
    return ClaimVerdict(
        source=asked.source,
        outcome=outcome,
        reason=None if reason is None else str(reason),
        reasoning=reasoning[:_MAX_REASONING_CHARS],
    )


def requests_of(claims: Sequence[PageClaim]) -> Iterator[Sequence[PageClaim]]:
    """Divide the claims of a page into those of single requests."""
    for at in range(0, len(claims), CLAIMS_PER_REQUEST):
        yield claims[at : at + CLAIMS_PER_REQUEST]


def audit_request(
    asked: Sequence[PageClaim], page: PreparedPage, model: str, block_builder: BlockBuilder, *, vote: int = 0
) -> LLMRequest:
    """Return the request for the verdicts on some claims of a page."""
    rendered = render_texts("audit_page", [("claims", _numbered(asked))], block_builder, page=page)
    return rendered.request(model, PageAudit, purpose="verify", vote=vote)


def _numbered(asked: Sequence[PageClaim]) -> str:
    """Return the claims one per line, so that the text of a claim cannot begin another one."""
    lines = []
    for number, one in enumerate(asked, start=1):
        context = f" ({one.statement.context})" if one.statement.context else ""
        lines.append(f"{number}. {' '.join(one.claim.text.split())}")
        lines.append(f"   statement: {one.statement.plain[:_MAX_STATEMENT_CHARS]}{context}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditor:
    """Decides the claims of a page with a model, a jury, or the lexical judge. ``text`` is the report.

    A verdict whose quotes leave out a negation of their sentences is asked for once more. The lexical judge knows
    neither contradictions nor partial support.
    """

    llm: LLMClient
    judged_by: JudgeName
    block_builder: BlockBuilder
    pages: PagePreparer
    text: str
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the lexical judge decides one claim. It does not wait for anything, so the pages would otherwise block
    the event loop together."""

    async def decide(self, asked: Sequence[PageClaim], evidence: Evidence) -> dict[int, ClaimVerdict]:
        """Return the verdicts by index. Claims that were not decided have the reason."""
        verdicts = await self._decide_all(asked, evidence)
        unmet = {one.index: one.claim.text for one in asked if verdicts[one.index].outcome in _UNMET}
        if not unmet:
            return verdicts
        found = await run_cpu_bound(
            lambda: {index: _closest(claim, evidence.text, len(unmet)) for index, claim in unmet.items()},
            evidence.text,
            limit_chars=_SHORT_PAGE_CHARS // len(unmet),
        )
        return verdicts | {index: verdicts[index].model_copy(update={"closest": each}) for index, each in found.items()}

    async def _decide_all(self, asked: Sequence[PageClaim], evidence: Evidence) -> dict[int, ClaimVerdict]:
        if not self.judged_by.is_jury:
            return await self._decide_by(self.judged_by.first, asked, evidence)
        async with asyncio.TaskGroup() as group:
            members = {
                one.model: group.create_task(self._decide_by(one, asked, evidence)) for one in self.judged_by.members
            }
        return {
            one.index: jury_claim_verdict(
                self.judged_by.model, {model: member.result()[one.index] for model, member in members.items()}
            )
            for one in asked
        }

    async def _decide_by(
        self, member: ModelName, asked: Sequence[PageClaim], evidence: Evidence
    ) -> dict[int, ClaimVerdict]:
        if member.provider == LEXICAL:
            return await self._compare_words(member.model, asked, evidence)
        page = await self.pages.prepare(evidence)
        if page.is_cut:
            return await self._decide_in_parts(member.model, asked, page)
        return await self._decide(member.model, asked, page, vote=0)

    async def _decide_in_parts(
        self, model: str, asked: Sequence[PageClaim], page: PreparedPage
    ) -> dict[int, ClaimVerdict]:
        """Return the verdicts on a long page, shown in parts. As ``Verifier`` does, but for several claims at once."""
        claims = "\n".join(one.claim.text for one in asked)
        parts, is_whole = await self.pages.parts(page, claims, max_chars=None)
        found: dict[int, list[ClaimVerdict]] = {one.index: [] for one in asked}
        left = list(asked)
        for place, part in enumerate(parts):
            shown = await self.pages.prepare_part(page, part, use_screenshot=place == 0)
            for index, verdict in (await self._decide(model, left, shown, vote=0)).items():
                found[index].append(_located(verdict, part, page.text))
            left = [one for one in left if not _is_grounded(found[one.index][-1])]
            if not left:
                break
        deciding = {
            index: min(verdicts, key=lambda one: (DECIDING_ORDER.index(one.outcome), not one.quotes))
            for index, verdicts in found.items()
        }
        return {index: _if_seen(verdict, "" if is_whole else TOO_LONG) for index, verdict in deciding.items()}

    async def _decide(
        self, model: str, asked: Sequence[PageClaim], page: PreparedPage, *, vote: int, repair: bool = False
    ) -> dict[int, ClaimVerdict]:
        request = audit_request(asked, page, model, self.block_builder, vote=vote)
        if repair:
            request = repair_request(request, UnusableKind.CUT_QUOTE)
        try:
            reply = await self.llm.complete(request)
        except LLMOutputUnusable as error:
            if len(asked) > 1:  # a shorter reply may be usable
                middle = len(asked) // 2
                first = await self._decide(model, asked[:middle], page, vote=vote, repair=repair)
                return first | await self._decide(model, asked[middle:], page, vote=vote, repair=repair)
            return {asked[0].index: _failed(asked[0], error)}
        except LLMError as error:
            log.warning("claims of a page not judged", extra={"reason": error.reason, "error": str(error)})
            return {one.index: _failed(one, error) for one in asked}
        parsed = reply.parsed if isinstance(reply.parsed, PageAudit) else PageAudit(claims=[])
        by_number = {one.number: one for one in parsed.claims}
        decided = [(one, by_number[number]) for number, one in enumerate(asked, start=1) if number in by_number]
        missing = [one for number, one in enumerate(asked, start=1) if number not in by_number]

        def check() -> tuple[dict[int, ClaimVerdict], list[PageClaim]]:
            verdicts = {
                one.index: _if_seen(
                    self._verdict(one, audited, page, request, cached=reply.cached),
                    unseen_part(page, text_only=reply.text_only, shortened=reply.shorter_page is not None),
                )
                for one, audited in decided
            }
            # verdicts that need a quote, if all that are in the page leave out a negation
            return verdicts, [
                one
                for one, audited in decided
                if not repair
                and audited.verdict != "not_supported"
                and needs_whole_sentence(page.index.folded, audited.quotes, url=page.url)
            ]

        verdicts, cut = await self.pages.run_page_check(check, page)
        if cut:
            repaired = await self._decide(model, cut, page, vote=vote, repair=True)
            verdicts |= {at: one for at, one in repaired.items() if one.outcome is not ClaimOutcome.NOT_JUDGED}
        if missing and vote == 0 and not repair:
            verdicts |= await self._decide(model, missing, page, vote=1)
        elif missing:
            detail = "The reply of the model lacks this claim."
            for one in missing:
                verdicts[one.index] = without_verdict(one, ClaimOutcome.NOT_JUDGED, Reason.LLM_OUTPUT_UNUSABLE, detail)
        return verdicts

    def _verdict(
        self, asked: PageClaim, audited: AuditedClaim, page: PreparedPage, request: LLMRequest, *, cached: bool
    ) -> ClaimVerdict:
        """Return the verdict with the quotes that are in the page. A contradiction without a quote does not count."""
        outcome = ClaimOutcome(audited.verdict)
        grounds = ClaimGrounds.of(asked.claim.text, task="", answer=asked.statement.plain, page=page)
        located = find_quotes(page.index.folded, page.text, audited.quotes, page_id=page.page_id, url=page.url)
        quotes = grounds.usable_quotes(located) if outcome is ClaimOutcome.SUPPORTED else located
        reasoning = audited.reasoning
        if outcome is ClaimOutcome.CONTRADICTED and not quotes:
            outcome = ClaimOutcome.NOT_SUPPORTED
            reasoning = (
                f"{reasoning} (The model says that the page contradicts the claim, but quotes no passage of it.)"
            )
        is_silent = outcome is ClaimOutcome.NOT_SUPPORTED
        return ClaimVerdict(
            source=asked.source,
            outcome=outcome,
            reasoning=reasoning[:_MAX_REASONING_CHARS],
            quotes=[] if is_silent else quotes_json(quotes),
            unsupported=[]
            if outcome is ClaimOutcome.SUPPORTED
            else self._unsupported(asked, audited.unsupported[:_MAX_UNSUPPORTED]),
            grounded=None if is_silent else bool(quotes),
            signals=list(grounds.signals()),
            model=request.model,
            prompt=request.prompt,
            cached=cached,
        )

    async def _compare_words(
        self, model: str, asked: Sequence[PageClaim], evidence: Evidence
    ) -> dict[int, ClaimVerdict]:
        """Return the verdicts of the lexical judge."""
        page = await self.pages.prepare(evidence, use_screenshot=False)
        verifier = Verifier(self.llm, model, block_builder=self.block_builder, pages=self.pages)
        verdicts = {}
        for one in asked:
            async with self.turn:
                await asyncio.sleep(0)
                judged = await verifier.settle(
                    ClaimQuestion(
                        claim=JudgedClaim(text=one.claim.text),
                        task="",
                        answer=one.statement.plain,
                        evidence=evidence,
                        trials=1,
                        use_screenshot=False,
                    )
                )
                verdicts[one.index] = self._lexical_verdict(one, judged, page)
        return verdicts

    def _lexical_verdict(self, asked: PageClaim, judged: Verdict, page: PreparedPage) -> ClaimVerdict:
        if judged.outcome is Outcome.NOT_JUDGED:
            return without_verdict(asked, ClaimOutcome.NOT_JUDGED, judged.reason, judged.reasoning)
        is_supported = judged.outcome is Outcome.PASSED
        return ClaimVerdict(
            source=asked.source,
            outcome=ClaimOutcome.SUPPORTED if is_supported else ClaimOutcome.NOT_SUPPORTED,
            reasoning=judged.reasoning,
            quotes=quotes_json(judged.quotes),
            unsupported=[]
            if is_supported
            else self._unsupported(asked, missing_terms(asked.claim.text, page.index.stems)),
            grounded=judged.grounded if is_supported else None,
            signals=list(judged.signals),
            model=judged.model,
            baseline=True,
        )

    def _unsupported(self, asked: PageClaim, words: Iterable[str]) -> list[Span]:
        """Return the spans of the unsupported words in the statement; those of the claim if none are found."""
        spans = [find_words(self.text, each, asked.statement.start, asked.statement.end) for each in words]
        return merged([span for span in spans if span is not None] or asked.claim.spans)


def _closest(claim: str, text: str, claims: int) -> ClosestPassage | None:
    """Return the closest passage of a page. ``claims`` share the time that the search of a page may take."""
    found = closest_passage(claim, text[: _MAX_SEARCHED_CHARS // claims])
    if found is None:
        return None
    passage = text[found.start : found.end]
    return ClosestPassage(text=passage, start=found.start, end=found.end, missing=list(absent_words(claim, passage)))


def _failed(asked: PageClaim, error: LLMError) -> ClaimVerdict:
    return without_verdict(asked, ClaimOutcome.NOT_JUDGED, error.reason, str(error))


def _is_grounded(verdict: ClaimVerdict) -> bool:
    """Return whether a verdict supports its claim with a quote that code found."""
    return verdict.outcome is ClaimOutcome.SUPPORTED and bool(verdict.quotes)


def _located(verdict: ClaimVerdict, part: PagePart, text: str) -> ClaimVerdict:
    """Return a verdict on a part of a page with the places of its quotes in the text of the page."""
    spans = [part.locate(quote.start, quote.end) for quote in verdict.quotes]
    quotes = [
        quote.model_copy(update={"text": text[start:end], "start": start, "end": end})
        for quote, (start, end) in zip(verdict.quotes, spans, strict=True)
    ]
    return verdict.model_copy(update={"quotes": quotes})


def _if_seen(verdict: ClaimVerdict, unseen: str) -> ClaimVerdict:
    """Return the verdict, as not judged if it may depend on the unseen part of the page. As ``Verifier`` does."""
    if not unseen or verdict.outcome is ClaimOutcome.NOT_JUDGED or _is_grounded(verdict):
        return verdict
    return verdict.model_copy(
        update={
            "outcome": ClaimOutcome.NOT_JUDGED,
            "reason": Reason.PAGE_NOT_FULLY_SEEN.value,
            "reasoning": unseen_reasoning(unseen, verdict.reasoning)[:_MAX_REASONING_CHARS],
            "quotes": [],
            "unsupported": [],
            "grounded": None,
        }
    )


def jury_claim_verdict(jury: str, verdicts: Mapping[str, ClaimVerdict]) -> ClaimVerdict:
    """Return the verdict of a jury from those of its members, by model.

    The majority decides whether the page supports the claim. If not, the most frequent outcome of the members on that
    side counts, and the first one among equals.
    """
    votes = [one.outcome is ClaimOutcome.SUPPORTED if one.outcome in _JUDGED else None for one in verdicts.values()]
    decided = jury_verdict(votes)
    side = [one for one, vote in zip(verdicts.values(), votes, strict=True) if vote is decided and vote is not None]
    if side:
        [(outcome, _)] = Counter(one.outcome for one in side).most_common(1)
        side = [one for one in side if one.outcome is outcome]
        deciding = next((one for one in side if one.quotes), side[0])
    else:
        reasons = {one.reason for one in verdicts.values()}
        deciding = ClaimVerdict(
            source=next(iter(verdicts.values())).source,
            outcome=ClaimOutcome.NOT_JUDGED,
            reason=reasons.pop() if len(reasons) == 1 else Reason.NO_MAJORITY.value,
            reasoning="\n".join(
                f"{model}: {one.reasoning or one.reason}"
                for model, one in verdicts.items()
                if one.outcome not in _JUDGED
            ),
        )
    members = [
        MemberOutcome(model=model, outcome=one.outcome, reason=one.reason, reasoning=one.reasoning)
        for model, one in verdicts.items()
    ]
    cached = all(one.cached for one in verdicts.values())
    return deciding.model_copy(update={"model": jury, "cached": cached, "jury": members})


def quotes_json(quotes: Sequence[Quote]) -> list[PageQuote]:
    """Return quotes as in the document."""
    return [PageQuote(text=quote.text, start=quote.start, end=quote.end, origin=quote.origin.value) for quote in quotes]


def merged(spans: Sequence[Span]) -> list[Span]:
    """Return the union of spans, in text order."""
    union: list[Span] = []
    for span in sorted(spans, key=lambda each: (each.start, each.end)):
        if union and span.start <= union[-1].end:
            union[-1] = Span(start=union[-1].start, end=max(union[-1].end, span.end))
        else:
            union.append(span)
    return union
