from __future__ import annotations

import asyncio

import pytest

from cache.capture import CaptureOutcome, Evidence
from judges.errors import LLMCircuitOpen, LLMOutputUnusable, LLMTimeout, LLMUnavailable, ReplyNotCached, UnusableKind
from judges.llm.client import LLMRequest
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.rendering import BinaryEvalResult, Style
from judges.verifier import MAX_REASONING_CHARS, ClaimQuestion, Verifier
from rubrics.verdict import Claim, Outcome, Reason, Usage, Verdict
from tests.fakes.llm import Rule, RuleLLM
from tests.fakes.pages import FixedEvidence, jpeg, missing, page

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
TEXT = "Ida Norrstad was director of the institute until 2004."
QUOTE = "Ida Norrstad was director"


def verifier(llm: RuleLLM, style: Style = Style.NATIVE) -> Verifier:
    return Verifier(llm, "gpt-6-luna", block_builder=BLOCK_BUILDER, pages=PagePreparer(BLOCK_BUILDER), style=style)


async def judged(rule: Rule, *, trials: int = 3, evidence: Evidence | None = None, **fakes: object) -> Verdict:
    llm = RuleLLM(rule, **fakes)  # type: ignore[arg-type]
    return await verifier(llm).settle(
        ClaimQuestion(claim=Claim(text="So it is."), task="t", answer="a", evidence=evidence, trials=trials)
    )


def by_vote(*votes: bool | Exception) -> Rule:
    return lambda request: votes[request.vote]


LOST = LLMUnavailable("503", status=503)
UNUSABLE = LLMOutputUnusable(UnusableKind.TRUNCATED, "cut")


@pytest.mark.parametrize(
    ("votes", "trials", "outcome", "calls"),
    [
        ((True, True), 3, Outcome.PASSED, 2),
        ((True, False, True), 3, Outcome.PASSED, 3),
        ((False, True, False), 3, Outcome.FAILED, 3),
        ((True,), 1, Outcome.PASSED, 1),
        ((False, True, False, True, True), 5, Outcome.PASSED, 5),
        ((True, LOST, True), 3, Outcome.PASSED, 3),
        ((LOST, False, False), 3, Outcome.FAILED, 3),
    ],
)
async def test_majority_decides_with_the_fewest_necessary_votes(
    votes: tuple[bool | Exception, ...], trials: int, outcome: Outcome, calls: int
):
    verdict = await judged(by_vote(*votes), trials=trials)
    assert verdict.outcome is outcome
    assert len(verdict.votes) == calls


@pytest.mark.parametrize(
    ("votes", "reason", "calls"),
    [
        ((LOST, LOST), Reason.LLM_UNAVAILABLE, 2),
        ((UNUSABLE, UNUSABLE), Reason.LLM_OUTPUT_UNUSABLE, 2),
        ((LLMTimeout("late"), LLMTimeout("late")), Reason.TIMEOUT, 2),
        ((LLMCircuitOpen("no"), LLMCircuitOpen("no")), Reason.LLM_REJECTED, 2),
        ((LOST, UNUSABLE), Reason.NO_MAJORITY, 2),
        ((True, LOST, LOST), Reason.NO_MAJORITY, 3),
        ((True, LOST, False), Reason.NO_MAJORITY, 3),
    ],
)
async def test_lost_votes_never_become_a_verdict(votes: tuple[bool | Exception, ...], reason: Reason, calls: int):
    verdict = await judged(by_vote(*votes))
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_JUDGED, reason)
    assert len(verdict.votes) == calls
    assert verdict.reasoning


async def test_each_vote_is_stored_with_its_fault():
    verdict = await judged(by_vote(True, LOST, True))
    assert [(vote.result, vote.fault) for vote in verdict.votes] == [
        (True, None),
        (None, Reason.LLM_UNAVAILABLE),
        (True, None),
    ]


async def test_votes_needed_in_any_case_are_requested_concurrently():
    both = asyncio.Barrier(2)

    async def pause(request: LLMRequest) -> None:
        await both.wait()

    async with asyncio.timeout(240):
        verdict = await judged(lambda request: True, pause=pause)
    assert len(verdict.votes) == 2


async def test_usage_includes_lost_votes():
    paid = LLMOutputUnusable(UnusableKind.EMPTY, "empty", usage=Usage(calls=2))
    verdict = await judged(by_vote(True, paid, True))
    assert verdict.usage.calls == 4


async def test_quote_found_in_the_page_grounds_the_verdict():
    verdict = await judged(lambda request: True, evidence=page(text=TEXT), quotes=lambda request: [QUOTE])
    assert verdict.grounded is True
    assert [quote.text for quote in verdict.quotes] == [QUOTE]


@pytest.mark.parametrize("quotes", [[], ["Ida Norrstad was dismissed"], ["So it is."], ["a"]])
async def test_supported_verdict_without_valid_quote_is_not_grounded(quotes: list[str]):
    verdict = await judged(lambda request: True, evidence=page(text=TEXT), quotes=lambda request: quotes)
    assert verdict.outcome is Outcome.PASSED
    assert (verdict.grounded, verdict.quotes) == (False, ())


DENIED = "The ministry denied that the vaccine causes severe harm."


@pytest.mark.parametrize(
    ("second", "result", "outcome", "grounded"),
    [
        ([DENIED], True, Outcome.PASSED, True),
        ([], False, Outcome.FAILED, None),
        (["the vaccine causes severe harm"], True, Outcome.PASSED, False),
    ],
)
async def test_vote_whose_quote_leaves_out_a_negation_is_asked_for_once_more(
    second: list[str], result: bool, outcome: Outcome, grounded: bool | None
):
    def is_repair(request: LLMRequest) -> bool:
        return "whole sentences" in str(request.messages[-1]["content"])

    llm = RuleLLM(
        lambda request: result if is_repair(request) else True,
        quotes=lambda request: second if is_repair(request) else ["the vaccine causes severe harm"],
    )
    verdict = await verifier(llm).settle(
        ClaimQuestion(claim=Claim(text="So it is."), task="t", answer="a", evidence=page(text=DENIED), trials=1)
    )
    assert (verdict.outcome, verdict.grounded, len(llm.requests)) == (outcome, grounded, 2)
    assert llm.requests[1].messages[:-1] == llm.requests[0].messages
    assert (verdict.usage.calls, len(verdict.votes), len(verdict.requests)) == (2, 1, 2)


@pytest.mark.parametrize("quotes", [["made up by the model"], [], ["the vaccine causes severe harm", DENIED]])
async def test_other_quotes_are_not_asked_for_again(quotes: list[str]):
    verdict = await judged(lambda request: True, evidence=page(text=DENIED), quotes=lambda request: quotes, trials=1)
    assert verdict.usage.calls == 1


async def test_first_vote_counts_if_the_second_request_fails():
    verdict = await judged(
        lambda request: True if len(request.messages) == 2 else LOST,
        evidence=page(text=DENIED),
        quotes=lambda request: ["the vaccine causes severe harm"],
        trials=1,
    )
    assert (verdict.outcome, verdict.grounded) == (Outcome.PASSED, False)


async def test_quote_of_any_agreeing_vote_grounds_the_verdict():
    def quotes(request: LLMRequest) -> list[str]:
        return [QUOTE] if request.vote == 1 else ["made up by the model"]

    verdict = await judged(lambda request: True, evidence=page(text=TEXT), quotes=quotes)
    assert verdict.grounded is True


async def test_quote_of_an_outvoted_vote_does_not_count():
    def quotes(request: LLMRequest) -> list[str]:
        return [QUOTE] if request.vote == 1 else []

    verdict = await judged(by_vote(True, False, True), evidence=page(text=TEXT), quotes=quotes)
    assert verdict.grounded is False


@pytest.mark.parametrize("result", [True, False])
async def test_verdict_without_page_has_no_grounding(result: bool):
    assert (await judged(lambda request: result)).grounded is None


async def test_refuted_claim_has_a_reason_and_no_grounding():
    verdict = await judged(lambda request: False, evidence=page(text=TEXT), quotes=lambda request: [QUOTE])
    assert (verdict.reason, verdict.grounded, verdict.quotes) == (Reason.REFUTED, None, ())


async def test_verdict_records_evidence_prompt_model_and_usage():
    evidence = page(text=TEXT, screenshots=(jpeg(),))
    verdict = await judged(lambda request: True, evidence=evidence, quotes=lambda request: [QUOTE])
    assert verdict.evidence == evidence.digests
    assert verdict.prompt is not None and verdict.prompt.startswith("verify_page@")
    assert verdict.model == "gpt-6-luna"
    assert verdict.usage.calls == 2


async def test_reasoning_is_truncated():
    reply = BinaryEvalResult(reasoning="x" * 1_000_000, result=True)
    assert len((await judged(lambda request: reply)).reasoning) == MAX_REASONING_CHARS


async def test_cancellation_cancels_every_vote():
    both = asyncio.Barrier(3)

    async def pause(request: LLMRequest) -> None:
        await both.wait()
        await asyncio.Event().wait()

    llm = RuleLLM(pause=pause)
    task = asyncio.create_task(verifier(llm).settle(ClaimQuestion(claim=Claim(text="x"), task="t", answer="a")))
    await both.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(llm.cancelled) == 2


async def judged_any(llm: RuleLLM, shelf: FixedEvidence, *sources: str, style: Style = Style.NATIVE) -> Verdict:
    claim = Claim(text="So it is.", sources=sources)
    return await verifier(llm, style).settle_any(ClaimQuestion(claim=claim, task="t", answer="a"), shelf)


async def test_claim_without_sources_is_judged_from_the_answer_alone():
    llm, shelf = RuleLLM(), FixedEvidence({})
    verdict = await verifier(llm).settle_any(ClaimQuestion(claim=Claim(text="x"), task="t", answer="a"), shelf)
    assert verdict.outcome is Outcome.PASSED
    assert shelf.requested_urls == []


async def test_claim_with_an_empty_source_list_fails_without_a_request():
    llm = RuleLLM()
    verdict = await judged_any(llm, FixedEvidence({}))
    assert (verdict.reason, llm.requests) == (Reason.NO_SOURCE, [])


async def test_missing_page_sends_no_request():
    llm = RuleLLM()
    gone = missing("https://a.example/", CaptureOutcome.HTTP_ERROR, gone=True)
    verdict = await judged_any(llm, FixedEvidence({"https://a.example/": gone}), "https://a.example/")
    assert (verdict.reason, llm.requests) == (Reason.SOURCE_GONE, [])


@pytest.mark.parametrize(("style", "quotes"), [(Style.NATIVE, [QUOTE]), (Style.COMPAT, [])])
async def test_first_supporting_source_decides_and_the_other_requests_are_cancelled(style: Style, quotes: list[str]):
    all_asked = asyncio.Event()

    async def pause(request: LLMRequest) -> None:
        if {each.parts["url"] for each in llm.requests} == set(urls):
            all_asked.set()
        if request.parts["url"] != "https://b.example/":
            await asyncio.Event().wait()
        await all_asked.wait()

    llm = RuleLLM(lambda request: BinaryEvalResult(reasoning="so", result=True, quotes=quotes), pause=pause)
    urls = [f"https://{name}.example/" for name in "abc"]
    shelf = FixedEvidence({url: page(url, TEXT) for url in urls})
    verdict = await judged_any(llm, shelf, *urls, style=style)
    assert verdict.outcome is Outcome.PASSED
    assert {request.parts["url"] for request in llm.cancelled} == {"https://a.example/", "https://c.example/"}
    assert llm.in_flight == 0


@pytest.mark.parametrize("first", ["https://a.example/", "https://b.example/"])
async def test_quote_in_any_source_grounds_the_claim_in_whatever_order_they_are_judged(first: str):
    class Ordered(Verifier):
        async def settle(self, question: ClaimQuestion) -> Verdict:
            if question.cache_only:
                raise ReplyNotCached
            is_first = question.evidence is not None and question.evidence.capture.url == first
            if not is_first:
                await first_judged.wait()
            verdict = await super().settle(question)
            first_judged.set()
            return verdict

    first_judged = asyncio.Event()
    llm = RuleLLM(lambda request: BinaryEvalResult(reasoning="so", result=True, quotes=[QUOTE]))
    shelf = FixedEvidence(
        {"https://a.example/": page("https://a.example/", TEXT), "https://b.example/": page("https://b.example/")}
    )
    ordered = Ordered(llm, "gpt-6-luna", block_builder=BLOCK_BUILDER, pages=PagePreparer(BLOCK_BUILDER))
    claim = Claim(text="So it is.", sources=("https://b.example/", "https://a.example/"))
    verdict = await ordered.settle_any(ClaimQuestion(claim=claim, task="t", answer="a"), shelf)
    assert (verdict.outcome, verdict.grounded, [quote.text for quote in verdict.quotes]) == (
        Outcome.PASSED, True, [QUOTE],
    )  # fmt: skip
