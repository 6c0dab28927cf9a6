"""Claims judged for partial support: votes, words, combination of sources, and the result."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from answers.submission import Answer
from cache.capture import Evidence
from judges.analysis.replay.recomputation import inconsistent_leaves, score_differences
from judges.analysis.replay.tree import tree_of
from judges.errors import LLMOutputUnusable, LLMUnavailable, UnusableKind
from judges.llm.encoding import request_key
from judges.llm.lexical import LexicalClient
from judges.llm.provider_adapter import FinishReason, RawReply
from judges.llm.replies import read_reply
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.prompting.verdict_reply import BinaryEvalResult, PartialEvalResult
from judges.registry import Judge
from judges.result import native_summary
from judges.runner import Judgement
from judges.source_policy import combine_verdicts
from judges.verifier import Verifier
from judges.yaml_tasks.compiler import compile_task
from rubrics.node import RubricNode
from rubrics.rubric import Rubric
from rubrics.verdict import Claim, ClaimSpan, Outcome, Reason, Support, Verdict
from tests.fakes.llm import Rule, RuleLLM
from tests.fakes.pages import page

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
URL = "https://velm.example/history"
CLAIM = "Ida Norrstad founded the institute in 1931 with two boats"
PAGE = "The institute was founded by Ida Norrstad in 1931. It had four people and a kitchen."
S, P, N = Support.SUPPORTED, Support.PARTLY_SUPPORTED, Support.NOT_SUPPORTED
LOST = LLMUnavailable("503", status=503)
Word = Literal["supported", "partly_supported", "not_supported"]


def said(verdict: Word, *unsupported: str, reasoning: str = "r") -> PartialEvalResult:
    return PartialEvalResult.model_construct(
        verdict=verdict, reasoning=reasoning, unsupported=list(unsupported), quotes=[]
    )


PARTLY = said("partly_supported", "with two boats", reasoning="It had no boats.")
YES, NO = said("supported"), said("not_supported", reasoning="About something else.")


def verifier(llm: Any) -> Verifier:
    return Verifier(llm, "gpt-6-luna", block_builder=BLOCK_BUILDER, pages=PagePreparer(BLOCK_BUILDER))


async def judged(*votes: PartialEvalResult | Exception, trials: int = 3, claim: str = CLAIM) -> tuple[Verdict, RuleLLM]:
    rule: Rule = lambda request: votes[request.vote]  # type: ignore[assignment,return-value] # noqa: E731
    llm = RuleLLM(rule)
    asked = Claim(text=claim, sources=(URL,), partial=True)
    return await verifier(llm).judge(asked, task="t", answer="a", evidence=page(URL, PAGE), trials=trials), llm


@pytest.mark.parametrize(
    ("votes", "outcome", "support"),
    [
        ((YES, YES), Outcome.PASSED, S),
        ((YES, PARTLY, YES), Outcome.PASSED, S),
        ((PARTLY, PARTLY), Outcome.FAILED, P),
        ((PARTLY, NO, PARTLY), Outcome.FAILED, P),
        ((PARTLY, NO, NO), Outcome.FAILED, N),
        ((PARTLY, NO, YES), Outcome.FAILED, P),
        ((YES, PARTLY, NO), Outcome.FAILED, P),
        ((YES, NO, NO), Outcome.FAILED, N),
        ((NO, NO), Outcome.FAILED, N),
        ((PARTLY, NO, LOST), Outcome.FAILED, None),
        ((PARTLY, LOST, PARTLY), Outcome.FAILED, P),
        ((LOST, LOST), Outcome.NOT_JUDGED, None),
        ((YES, LOST, PARTLY), Outcome.NOT_JUDGED, None),
    ],
)
async def test_support_is_the_median_of_the_votes(votes: Any, outcome: Outcome, support: Support | None) -> None:
    verdict, llm = await judged(*votes)
    assert (verdict.outcome, verdict.support) == (outcome, support)
    assert len(llm.requests) == len(votes)
    assert [vote.support for vote in verdict.votes] == [
        None if isinstance(vote, Exception) else vote.support for vote in votes
    ]
    assert bool(verdict.unsupported) is (support is P)
    # The outcome is that of the same votes as yes and no.
    as_yes_no = [LOST if isinstance(vote, Exception) else vote.result for vote in votes]
    plain = await verifier(RuleLLM(lambda request: as_yes_no[request.vote])).judge(
        Claim(text=CLAIM, sources=(URL,)), task="t", answer="a", evidence=page(URL, PAGE)
    )
    assert plain.outcome is outcome
    assert (plain.support, plain.unsupported) == (None, ())


async def test_words_and_reasoning_are_those_of_the_first_vote_for_partial_support() -> None:
    verdict, _ = await judged(NO, PARTLY, said("partly_supported", "Ida"))
    start = CLAIM.index("with two boats")
    assert verdict.unsupported == (ClaimSpan(text="with two boats", start=start, end=len(CLAIM)),)
    assert verdict.reasoning == "It had no boats."
    assert verdict.reason is Reason.REFUTED
    assert verdict.prompt == "verify_page_partial@1"


async def test_words_that_are_not_in_the_claim_cost_the_vote() -> None:
    verdict, _ = await judged(*[said("partly_supported", "three boats")] * 2)
    assert (verdict.outcome, verdict.reason) == (Outcome.NOT_JUDGED, Reason.LLM_OUTPUT_UNUSABLE)
    assert [vote.fault for vote in verdict.votes] == [Reason.LLM_OUTPUT_UNUSABLE] * 2


def parsed(**values: Any) -> PartialEvalResult:
    raw = RawReply(text=json.dumps({"reasoning": "r", **values}), finish=FinishReason.STOP, model="m")
    reply = read_reply(raw, PartialEvalResult, purpose="verify", parts={"claim": CLAIM})
    assert isinstance(reply, PartialEvalResult)
    return reply


@pytest.mark.parametrize(
    "values",
    [
        {"verdict": "partly_supported", "unsupported": []},
        {"verdict": "partly_supported"},
        {"verdict": "partly_supported", "unsupported": ["three boats"]},
        {"verdict": "partly_supported", "unsupported": ["with two boats", ""]},
        {"verdict": "supported", "unsupported": ["with two boats"]},
    ],
)
def test_reply_whose_words_do_not_fit_is_unusable(values: dict[str, Any]) -> None:
    with pytest.raises(LLMOutputUnusable) as error:
        parsed(**values)
    assert error.value.kind is UnusableKind.WRONG_WORDS


@pytest.mark.parametrize("values", [{"verdict": "partly"}, {"verdict": True}, {"unsupported": []}])
def test_reply_without_a_known_verdict_is_off_schema(values: dict[str, Any]) -> None:
    with pytest.raises(LLMOutputUnusable) as error:
        parsed(**values)
    assert error.value.kind is UnusableKind.OFF_SCHEMA


def test_reply_that_marks_all_words_is_not_supported() -> None:
    reply = parsed(verdict="partly_supported", unsupported=[CLAIM])
    assert (reply.support, reply.result) == (N, False)


def test_words_of_a_claim_that_is_not_supported_do_not_matter() -> None:
    assert parsed(verdict="not_supported", unsupported=["anything"]).support is N


async def test_without_the_option_requests_are_unchanged() -> None:
    """Prompt, messages, schema and cache key do not depend on code for partial support."""
    llm = RuleLLM()
    await verifier(llm).judge(
        Claim(text=CLAIM, sources=(URL,)), task="t", answer="a", evidence=page(URL, PAGE), trials=1
    )
    [request] = llm.requests
    assert (request.prompt, request.schema) == ("verify_page@1", BinaryEvalResult)
    assert request_key(request, provider="openai", endpoint="", params={}) == (
        "fab7104bd1958069ae4851f6fbd831bbacabcaf492280afe4a667214194e3995"  # as before the option existed
    )


async def test_claims_about_the_answer_have_two_verdicts_only() -> None:
    llm = RuleLLM()
    verdict = await verifier(llm).judge(Claim(text=CLAIM, partial=True), task="t", answer="a")
    assert {request.prompt for request in llm.requests} == {"verify_answer@1"}
    assert verdict.support is None


def of_source(support: Support | None, *words: str, outcome: Outcome = Outcome.FAILED) -> Verdict:
    spans = tuple(ClaimSpan(text=word, start=0, end=len(word)) for word in words)
    return Verdict(outcome=outcome, support=support, unsupported=spans)


def test_source_that_leaves_the_fewest_words_unsupported_decides() -> None:
    combined = combine_verdicts([of_source(N), of_source(P, "long passage"), of_source(P, "short")])
    assert combined.support is P
    assert [span.text for span in combined.unsupported] == ["short"]


@pytest.mark.parametrize(
    ("verdicts", "support"),
    [
        ([of_source(P, "a"), of_source(S, outcome=Outcome.PASSED)], S),
        ([of_source(N), of_source(N)], N),
        ([of_source(N), of_source(None)], None),
        ([of_source(P, "a"), of_source(None)], P),
        ([of_source(P, "a"), of_source(None, outcome=Outcome.NOT_JUDGED)], None),
    ],
)
def test_support_by_several_sources(verdicts: list[Verdict], support: Support | None) -> None:
    combined = combine_verdicts(verdicts)
    assert combined.support is support
    assert bool(combined.unsupported) is (support is P)


async def test_claim_without_source_is_not_supported() -> None:
    async def evidence_for(url: str) -> Evidence:
        raise AssertionError(url)

    verdict = await verifier(RuleLLM()).judge_any(
        Claim(text=CLAIM, sources=(), partial=True), task="t", answer="a", evidence_for=evidence_for
    )
    assert (verdict.outcome, verdict.reason, verdict.support) == (Outcome.FAILED, Reason.NO_SOURCE, N)


async def lexically(claim: str) -> tuple[Support | None, list[str]]:
    async def evidence_for(url: str) -> Evidence:
        return page(URL, PAGE)

    verdict = await verifier(LexicalClient()).judge_any(
        Claim(text=claim, sources=(URL,), partial=True), task="t", answer="a", evidence_for=evidence_for, trials=1
    )
    return verdict.support, [span.text for span in verdict.unsupported]


@pytest.mark.parametrize(
    ("claim", "support", "unsupported"),
    [
        ("The institute was founded by Ida Norrstad in 1931", S, []),
        ("The institute was founded by Ida Norrstad in 1932", P, ["1932"]),
        ("Ida Norrstad founded the institute in 1931 and sold 12 paintings", P, ["sold 12 paintings"]),
        ("Whales sing below 5km of ice", N, []),
        ("The institute was not founded by Ida Norrstad in 1931", N, []),
    ],
)
async def test_lexical_judge_marks_what_the_closest_passage_lacks(
    claim: str, support: Support, unsupported: list[str]
) -> None:
    assert await lexically(claim) == (support, unsupported)


def summary_of(*leaves: tuple[Claim, Verdict]) -> dict[str, Any]:
    rubric = Rubric("t", "Who?")
    for number, (claim, verdict) in enumerate(leaves):
        rubric.add(rubric.root, RubricNode(id=f"leaf{number}", desc=claim.text, claim=claim, verdict=verdict))
    judgement = Judgement(
        judge=Judge(task="t"), answer=Answer(name="answer_1.md", text="x"), rubric=rubric, model="gpt-6-luna"
    )
    return native_summary(judgement, agent_name="demo")


ASKED = Claim(text=CLAIM, sources=(URL,), partial=True)
PLAIN = Claim(text=CLAIM, sources=(URL,))


async def summary_of_votes(*votes: PartialEvalResult) -> dict[str, Any]:
    passed, _ = await judged(YES, YES)
    verdict, _ = await judged(*votes)
    return summary_of((ASKED, passed), (ASKED, verdict))


async def test_partly_supported_leaf_fails_in_all_scores() -> None:
    partly, plain = await summary_of_votes(PARTLY, PARTLY), await summary_of_votes(NO, NO)
    for figure in ("final_score", "score", "status", "tree_statistics"):
        assert partly[figure] == plain[figure]
    assert partly["final_score"] == 0.5
    leaf = partly["eval_breakdown"][0]["verification_tree"]["children"][1]
    assert (leaf["outcome"], leaf["status"], leaf["score"]) == ("failed", "failed", 0.0)
    assert leaf["support"] == "partly_supported"
    assert leaf["unsupported"] == [{"text": "with two boats", "start": CLAIM.index("with"), "end": len(CLAIM)}]
    assert [vote["support"] for vote in leaf["votes"]] == ["partly_supported"] * 2


def test_result_without_the_option_has_no_new_keys() -> None:
    summary = summary_of((PLAIN, Verdict(outcome=Outcome.FAILED, reason=Reason.REFUTED)))
    leaf = summary["eval_breakdown"][0]["verification_tree"]["children"][0]
    assert not {"support", "unsupported"} & leaf.keys()


async def differences(change: Any = lambda leaf: None) -> list[str]:
    summary = json.loads(json.dumps(await summary_of_votes(PARTLY, PARTLY)))
    change(summary["eval_breakdown"][0]["verification_tree"]["children"][1])
    found = [*score_differences(summary), *inconsistent_leaves(tree_of(summary), lambda page_id: None)]
    return [difference.where for difference in found]


async def test_replay_recomputes_support_and_words() -> None:
    assert await differences() == []


@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("support", "supported", "support of leaf leaf1"),
        ("unsupported", [], "unsupported words of leaf leaf1"),
        ("unsupported", [{"text": "three boats", "start": 0, "end": 11}], "unsupported words of leaf leaf1"),
        ("unsupported", [{"text": "", "start": 3, "end": 3}], "unsupported words of leaf leaf1"),
        ("votes", [{"result": False, "model": "m", "support": "not_supported"}], "support of leaf leaf1"),
    ],
)
async def test_replay_finds_changed_support(field: str, value: Any, where: str) -> None:
    def change(leaf: dict[str, Any]) -> None:
        leaf[field] = value

    assert where in await differences(change)


TASK = """
format: 1
{option}description: Who founded it?
fields:
  person: {{type: text, description: The founder}}
  url: {{type: url, description: The source}}
rubric:
  parallel:
    founder: {{claim: '{{person}} founded the institute', sources: url}}
    named: {{claim: '{{person}} is a person'}}
"""


@pytest.mark.parametrize(("option", "is_partial"), [("partial: true\n", True), ("", False)])
def test_task_in_yaml_asks_for_partial_support_of_claims_with_sources(option: str, is_partial: bool) -> None:
    compiled = compile_task(TASK.format(option=option))
    claims = {leaf.id: leaf.claim for leaf in compiled.sample_rubric().leaves()}
    assert {id: claim is not None and claim.partial for id, claim in claims.items()} == {
        "founder": is_partial,
        "named": False,
    }
