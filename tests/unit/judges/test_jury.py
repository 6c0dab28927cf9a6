"""Juries in real runs: who is asked, how verdicts, quotes and costs combine, and what a fault of a member does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cache.capture import CaptureOutcome, Evidence
from judges.errors import LLMUnavailable, ModelNotConfigured
from judges.llm.client import LLMRequest
from judges.llm.providers import parse_judge
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import BinaryEvalResult
from judges.verifier import ClaimQuestion, JuryJudge, Verifier, judge_named
from rubrics.verdict import Claim, Outcome, QuoteOrigin, Reason, Verdict
from tests.fakes.llm import RuleLLM
from tests.fakes.pages import FixedEvidence, missing, page

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
TEXT = "Ida Norrstad was director of the institute until 2004."
QUOTE = "Ida Norrstad was director of the institute until 2004"
CLAIM = Claim(text="Ida Norrstad was director of the institute until 2004.")
LOST = LLMUnavailable("the server is down", status=503)

Votes = Mapping[str, "bool | Exception | BinaryEvalResult"]


def jury(votes: Votes) -> tuple[JuryJudge, RuleLLM]:
    llm = RuleLLM(lambda request: votes[request.model])
    preparer = PagePreparer(BLOCK_BUILDER)
    judge = judge_named(
        ",".join(votes), lambda model: Verifier(llm, model, block_builder=BLOCK_BUILDER, pages=preparer)
    )
    assert isinstance(judge, JuryJudge)
    return judge, llm


async def judged(votes: Votes, *, evidence: Evidence | None = None) -> Verdict:
    judge, _ = jury(votes)
    return await judge.settle(ClaimQuestion(claim=CLAIM, task="t", answer="a", evidence=evidence))


def says(result: bool, *quotes: str, reasoning: str = "because") -> BinaryEvalResult:
    return BinaryEvalResult(reasoning=reasoning, result=result, quotes=list(quotes))


@pytest.mark.parametrize(
    ("votes", "outcome"),
    [
        ((True, True, False), Outcome.PASSED),
        ((False, True, False), Outcome.FAILED),
        ((True, LOST, True), Outcome.PASSED),
        ((LOST, False, False), Outcome.FAILED),
        ((True, False, LOST), Outcome.NOT_JUDGED),
        ((LOST, LOST, True), Outcome.NOT_JUDGED),
    ],
)
async def test_majority_of_the_members_decides_and_a_fault_is_no_vote(
    votes: tuple[bool | Exception, ...], outcome: Outcome
) -> None:
    verdict = await judged(dict(zip("abc", votes, strict=False)))
    assert verdict.outcome is outcome
    sides: dict[bool | Exception, Outcome] = {True: Outcome.PASSED, False: Outcome.FAILED}
    assert [one.outcome for one in verdict.members] == [sides.get(vote, Outcome.NOT_JUDGED) for vote in votes]


async def test_reason_is_that_of_the_members_only_if_none_has_a_verdict() -> None:
    lost = await judged({"a": LOST, "b": LOST, "c": LOST})
    split = await judged({"a": True, "b": False, "c": LOST})
    assert (lost.reason, split.reason) == (Reason.LLM_UNAVAILABLE, Reason.NO_MAJORITY)
    assert split.reasoning == "c: the server is down"


async def test_every_member_is_asked_as_often_as_alone_and_all_of_them_are_charged() -> None:
    judge, llm = jury({"a": True, "b": True, "c": False})
    verdict = await judge.settle(ClaimQuestion(claim=CLAIM, task="t", answer="a"))
    assert sorted((request.model, request.vote) for request in llm.requests) == [
        (model, vote) for model in "abc" for vote in (0, 1)
    ]
    assert (verdict.usage.calls, verdict.usage.input_tokens, verdict.usage.usd) == (6, 600, pytest.approx(0.006))
    assert len(verdict.requests) == len(verdict.votes) == 6


async def test_reasoning_and_quotes_come_from_the_winning_side() -> None:
    votes = {
        "a": says(False, QUOTE, reasoning="a: no"),
        "b": says(True, "a passage that the page does not have", reasoning="b: yes"),
        "c": says(True, QUOTE, reasoning="c: yes"),
    }
    verdict = await judged(votes, evidence=page(text=TEXT))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.reasoning == "c: yes"
    assert [(quote.text, quote.origin) for quote in verdict.quotes] == [(QUOTE, QuoteOrigin.TEXT)]
    assert verdict.grounded is True
    failed = await judged({**votes, "b": says(False, reasoning="b: no")}, evidence=page(text=TEXT))
    assert (failed.outcome, failed.reasoning, failed.quotes) == (Outcome.FAILED, "a: no", ())


async def test_each_member_decides_over_all_sources() -> None:
    """Members may find a claim on different pages: no page has a majority, but the claim has one."""
    supports = {"a": "one", "b": "two", "c": ""}
    pages = {f"https://pages.example/{name}": page(text=f"Page {name}. {TEXT}") for name in ("one", "two")}

    def on(request: LLMRequest) -> BinaryEvalResult:
        return says(f"Page {supports[request.model]}." in request.parts["page"])

    llm, preparer = RuleLLM(on), PagePreparer(BLOCK_BUILDER)
    judge = judge_named("a,b,c", lambda model: Verifier(llm, model, block_builder=BLOCK_BUILDER, pages=preparer))
    claim = Claim(text=CLAIM.text, sources=tuple(pages))
    verdict = await judge.settle_any(ClaimQuestion(claim=claim, task="t", answer="a"), FixedEvidence(pages))
    assert verdict.outcome is Outcome.PASSED
    assert [one.outcome for one in verdict.members] == [Outcome.PASSED, Outcome.PASSED, Outcome.FAILED]
    assert {check.url: check.passed for check in verdict.checks} == dict.fromkeys(pages, True)


async def test_claim_without_a_page_is_no_verdict_of_a_jury() -> None:
    url = "https://pages.example/gone"
    judge, llm = jury({"a": True, "b": True, "c": True})
    verdict = await judge.settle_any(
        ClaimQuestion(claim=Claim(text=CLAIM.text, sources=(url,)), task="t", answer="a"),
        FixedEvidence({url: missing(url, CaptureOutcome.TIMEOUT)}),
    )
    assert (verdict.outcome, verdict.members, llm.requests) == (Outcome.NOT_JUDGED, (), [])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a,b", "odd number of members"),
        ("a,b,a", "twice"),
        ("a,,b", "invalid model ''"),
        ("a,b,c,d,e,f,g,h,i,j,k", "odd number of members from 3 to 9"),
        ("nowhere/a,b,c", "unknown provider 'nowhere'"),
    ],
)
def test_invalid_juries_are_refused(name: str, message: str) -> None:
    with pytest.raises(ModelNotConfigured, match="invalid jury") as refused:
        parse_judge(name)
    assert message in str(refused.value)


async def test_bug_in_one_member_is_raised_and_gives_no_verdict_of_the_others() -> None:
    judge, _ = jury({"a": True, "b": RuntimeError("a bug"), "c": True})
    with pytest.raises(ExceptionGroup) as raised:
        await judge.settle(ClaimQuestion(claim=CLAIM, task="t", answer="a", evidence=None))
    assert raised.group_contains(RuntimeError, match="a bug")
