"""Verdicts on the claims of one page, with a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.features.check.auditing import AuditedClaim, Auditor, PageAudit, PageClaim
from app.features.check.report import ClaimOutcome, Span, StatementKind
from app.features.check.statements import Claim, ReportStatement
from cache.capture import CaptureOutcome
from judges.llm.client import LLMRequest
from judges.llm.providers import parse_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from rubrics.verdict import Reason
from tests.fakes.llm import RuleLLM
from tests.fakes.pages import long_text, page

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
REPORT = "The Halden Bridge opened in 1931."
OPPOSITE = "The Halden Bridge opened in 1934."


def asked(index: int = 0) -> PageClaim:
    claim = Claim(text=REPORT, spans=(Span(start=0, end=len(REPORT)),))
    statement = ReportStatement(start=0, end=len(REPORT), kind=StatementKind.SENTENCE, marks=(), plain=REPORT)
    return PageClaim(index=index, source=0, claim=claim, statement=statement)


def auditor_of(llm: RuleLLM) -> Auditor:
    pages = PagePreparer(BLOCK_BUILDER)
    return Auditor(llm=llm, judged_by=parse_judge("m"), block_builder=BLOCK_BUILDER, pages=pages, text=REPORT)


@pytest.mark.parametrize(
    ("verdict", "text", "on_whole_page", "on_partial_page"),
    [
        ("supported", REPORT, "supported", "supported"),
        ("supported", "Another text.", "supported", "not_judged"),
        ("partly_supported", REPORT, "partly_supported", "not_judged"),
        ("contradicted", OPPOSITE, "contradicted", "not_judged"),
        ("not_supported", "Another text.", "not_supported", "not_judged"),
    ],
)
async def test_page_that_was_not_fully_seen_supports_with_a_quote_and_decides_nothing_else(
    verdict: str, text: str, on_whole_page: str, on_partial_page: str
):
    def reply(request: LLMRequest) -> PageAudit:
        audited = {"number": 1, "verdict": verdict, "reasoning": "read", "quotes": [text]}
        return PageAudit(claims=[AuditedClaim.model_validate(audited)])

    auditor = auditor_of(RuleLLM(reply))  # type: ignore[arg-type]
    whole = page(text=text if text != "Another text." else "Nothing about it.")
    partial: dict[str, Any] = {"id": "partial", "outcome": CaptureOutcome.PARTIAL, "detail": "still loading"}
    incomplete = replace(whole, capture=replace(whole.capture, **partial))
    garbled = page(text=whole.text + "\ufffd" * 20)
    assert (await auditor.decide([asked()], whole))[0].outcome is ClaimOutcome(on_whole_page)
    for shown, cause in ((incomplete, "still loading"), (garbled, "its text is garbled")):
        found = (await auditor.decide([asked()], shown))[0]
        assert found.outcome is ClaimOutcome(on_partial_page)
        if found.outcome is ClaimOutcome.NOT_JUDGED:
            assert (found.reason, found.unsupported, found.quotes) == (Reason.PAGE_NOT_FULLY_SEEN, [], [])
            assert cause in found.reasoning


@pytest.mark.parametrize(
    ("chars", "says", "outcome", "requests"),
    [
        (800_000, REPORT, ClaimOutcome.SUPPORTED, 1),
        (550_000, OPPOSITE, ClaimOutcome.NOT_SUPPORTED, 3),
    ],
)
async def test_long_page_is_shown_in_parts(chars: int, says: str, outcome: ClaimOutcome, requests: int):
    def reply(request: LLMRequest) -> PageAudit:
        shown = request.messages[-1]["content"][-1]["text"].partition("<claims ")[0]
        verdict = "supported" if REPORT in shown else "not_supported"
        audited = {"number": 1, "verdict": verdict, "reasoning": "read", "quotes": [REPORT]}
        return PageAudit(claims=[AuditedClaim.model_validate(audited)])

    llm = RuleLLM(reply)  # type: ignore[arg-type]
    filler = long_text(chars)
    shown = page(text=f"{filler[: chars // 2]}\n{says}\n{filler[chars // 2 :]}")
    verdict = (await auditor_of(llm).decide([asked()], shown))[0]
    assert (verdict.outcome, len(llm.requests)) == (outcome, requests)
    quoted = [shown.text[quote.start : quote.end] for quote in verdict.quotes]
    assert quoted == ([REPORT.rstrip(".")] if outcome is ClaimOutcome.SUPPORTED else [])
