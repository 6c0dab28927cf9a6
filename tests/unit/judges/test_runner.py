from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
from pydantic import BaseModel, Field

from answers.submission import Answer
from cache.capture import CaptureOutcome, Evidence
from cache.single_flight import SingleFlight
from judges.analysis.recomputation import score_differences
from judges.context import JudgeContext
from judges.errors import ExtractionFailed, JudgeBug, LLMUnavailable
from judges.extractor import Extractor
from judges.forbidden_sources import NONE_FORBIDDEN, ForbiddenSource, ForbiddenSources
from judges.llm.client import LLMRequest
from judges.prompting.blocks import BlockBuilder
from judges.prompting.page_view import PagePreparer
from judges.registry import Judge
from judges.result import native_summary
from judges.runner import Judgement, JudgeTools, run_judge
from judges.verifier import EvidenceLookup, Verifier
from rubrics.scoring import Score
from rubrics.verdict import Reason
from tests.fakes.llm import RuleLLM
from tests.fakes.pages import FixedEvidence, missing, page

BLOCK_BUILDER = BlockBuilder(b"0123456789abcdef")
URL = "https://velm.example/ida"
ANSWER = Answer(name="answer_1.md", text=f"Ida Norrstad, see {URL}")
TEXT = "Ida Norrstad was director of the Velm Institute until 2004."
UNKNOWN = {"value": None, "low": 0.0, "high": 1.0}


class Found(BaseModel):
    name: str = ""
    urls: list[str] = Field(default_factory=list)


Coroutine = Callable[[JudgeContext], Awaitable[None]]


async def judged(
    coroutine: Coroutine,
    llm: RuleLLM | None = None,
    shelf: EvidenceLookup | None = None,
    *,
    deadline_s: float | None = None,
    verifier: type[Verifier] = Verifier,
    forbidden: ForbiddenSources = NONE_FORBIDDEN,
) -> Judgement:
    llm = llm or RuleLLM(values={"Found": Found(name="Ida Norrstad", urls=[URL])})
    pages = PagePreparer(BLOCK_BUILDER)
    tools = JudgeTools(
        verifier=verifier(llm, "gpt-6-luna", block_builder=BLOCK_BUILDER, pages=pages),
        extractor=Extractor(llm, "gpt-6-luna", block_builder=BLOCK_BUILDER, pages=pages),
        evidence_for=shelf or FixedEvidence({URL: page(URL, TEXT)}),
        forbidden=forbidden,
    )
    return await run_judge(
        Judge(task="t", description="Who?", coroutine=coroutine), ANSWER, tools, deadline_s=deadline_s
    )


def outcomes(judgement: Judgement) -> dict[str, tuple[str, str | None]]:
    return {
        leaf.id: (leaf.verdict.outcome.value, leaf.verdict.reason and leaf.verdict.reason.value)
        for leaf in judgement.rubric.leaves()
        if leaf.verdict is not None
    }


async def lineage(ctx: JudgeContext) -> None:
    found = await ctx.extract(Found, "The name and its pages", name="who")
    steps = ctx.sequential("who", "The director")
    steps.check("given", found.name, critical=True)
    steps.verify("right", f"{found.name} was director", sources=found.urls, critical=True, weight=2)
    ctx.verify("plain", "The answer names a person")


async def test_every_declared_leaf_is_final():
    judgement = await judged(lineage)
    assert outcomes(judgement) == {
        "who/given": ("passed", None),
        "who/right": ("passed", None),
        "plain": ("passed", None),
    }
    assert judgement.complete
    assert judgement.score == Score(value=1.0, low=1.0, high=1.0)
    assert judgement.prompts == ("extract_answer@1", "verify_answer@1", "verify_page@1")
    assert judgement.usage.calls == 1 + 2 + 2
    assert [(each.name, each.value) for each in judgement.extractions] == [
        ("who", {"name": "Ida Norrstad", "urls": [URL]})
    ]
    right = judgement.rubric.find("who/right").verdict
    assert right is not None and right.evidence == page(URL, TEXT).digests


async def test_claim_on_forbidden_sources_fails_before_its_gate_and_other_sources_count():
    async def four(ctx: JudgeContext) -> None:
        gate = ctx.verify("gate", "n: false", weight=2)
        ctx.verify("only", "only", ["https://bench.example/a", "https://bench.example/b"], requires=[gate])
        ctx.verify("also", "also", ["https://bench.example/a", URL])

    entry = ForbiddenSource(host="bench.example", reason="the benchmark", score=-1)
    llm = RuleLLM(lambda request: request.parts["claim"] != "n: false")
    judgement = await judged(four, llm, forbidden=ForbiddenSources([entry]))
    assert outcomes(judgement) == {
        "gate": ("failed", "refuted"),
        "only": ("failed", "source_forbidden"),
        "also": ("passed", None),
    }
    assert (judgement.score.value, judgement.score_unclipped) == (0.0, Score(value=0.0, low=0.0, high=0.0))
    summary = native_summary(judgement, agent_name="a")
    only = summary["eval_breakdown"][0]["verification_tree"]["children"][1]
    assert (only["penalized"], only["score"], only["status"]) == (True, 0.0, "failed")
    assert list(score_differences(summary)) == []


@pytest.mark.parametrize("is_down", [True, False])
async def test_lower_bound_is_0_if_a_judge_continues_without_a_verdict(is_down: bool):
    async def adaptive(ctx: JudgeContext) -> None:
        ctx.check("other", True)
        first = ctx.verify("first", "first")
        if await ctx.settle(first):
            ctx.verify("more", "n: more")

    verdict = LLMUnavailable("503") if is_down else True
    judgement = await judged(adaptive, RuleLLM(lambda request: verdict if request.parts["claim"] == "first" else False))
    if is_down:
        assert judgement.score == Score(value=None, low=0.0, high=1.0)
        assert outcomes(judgement)["undecided"] == ("not_judged", "llm_unavailable")
    else:
        assert judgement.score.value == pytest.approx(2 / 3)
        assert outcomes(judgement)["more"] == ("failed", "refuted")


async def test_faults_leave_the_score_open():
    async def three(ctx: JudgeContext) -> None:
        ctx.verify("ok", "ok")
        ctx.verify("lost", "lost")
        ctx.verify("gone", "gone", "https://gone.example/")

    llm = RuleLLM(lambda request: LLMUnavailable("503") if request.parts["claim"] == "lost" else True)
    shelf = FixedEvidence(
        {"https://gone.example/": missing("https://gone.example/", CaptureOutcome.HTTP_ERROR, gone=True)}
    )
    judgement = await judged(three, llm, shelf)
    assert outcomes(judgement) == {
        "ok": ("passed", None),
        "lost": ("not_judged", "llm_unavailable"),
        "gone": ("failed", "source_gone"),
    }
    assert not judgement.complete
    assert judgement.score.value is None
    assert (judgement.score.low, judgement.score.high) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


async def test_failed_extraction_leaves_all_leaves_not_judged():
    async def judge(ctx: JudgeContext) -> None:
        ctx.verify("before", "Declared before")
        ctx.check("extraction", True)
        await ctx.extract(Found, "x")

    llm = RuleLLM(values={"Found": LLMUnavailable("503")})
    judgement = await judged(judge, llm)
    assert outcomes(judgement) == {
        "before": ("not_judged", "extraction_failed"),
        "extraction": ("not_judged", "extraction_failed"),
        "extraction_": ("not_judged", "extraction_failed"),
    }
    assert judgement.score == Score(value=None, low=0.0, high=1.0)
    assert judgement.extractions[0].value is None
    assert "503" in (judgement.extractions[0].error or "")


@pytest.mark.parametrize("fault", ["failed extraction", "extraction at the deadline", "settlement at the deadline"])
async def test_certain_failures_do_not_close_the_score_of_a_rubric_that_may_lack_parts(
    fault: str, monkeypatch: pytest.MonkeyPatch
):
    async def judge(ctx: JudgeContext) -> None:
        await ctx.settle(ctx.verify("before", "n: refuted"))
        if fault == "settlement at the deadline":
            await ctx.settle(ctx.verify("open", "open"))
        await ctx.extract(Found, "x")

    async def pause(request: LLMRequest) -> None:
        if "deadline" in fault and request.parts.get("claim") != "n: refuted":
            await until_the_deadline(monkeypatch)

    llm = RuleLLM(lambda request: False, values={"Found": LLMUnavailable("503")}, pause=pause)
    judgement = await judged(judge, llm, deadline_s=600)
    assert outcomes(judgement)["before"] == ("failed", "refuted")
    assert_open(judgement)


async def until_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    later = asyncio.get_running_loop().time() + 3600
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: later)
    await asyncio.Event().wait()


def assert_open(judgement: Judgement) -> None:
    """Assert that neither the score nor its recomputation from the stored result is known."""
    summary = native_summary(judgement, agent_name="a")
    assert (summary["status"], summary["score"], summary["score_strict"]) == ("incomplete", UNKNOWN, UNKNOWN)
    assert list(score_differences(summary)) == []


@pytest.mark.parametrize("critical", [True, False])
async def test_failed_check_of_a_judge_that_continues_without_a_verdict_does_not_close_the_score(critical: bool):
    async def judge(ctx: JudgeContext) -> None:
        ctx.check("right", await ctx.settle(ctx.verify("lost", "lost", critical=not critical)), critical=critical)

    assert_open(await judged(judge, RuleLLM(lambda request: LLMUnavailable("503"))))


@pytest.mark.parametrize("asks_for", ["values", "verdict"])
@pytest.mark.parametrize("cancels", [True, False])
async def test_score_is_open_if_a_judge_does_not_wait_for_what_it_asked_for(asks_for: str, cancels: bool):
    asked, is_done = asyncio.Event(), asyncio.Event()

    async def pause(request: LLMRequest) -> None:
        if request.parts.get("claim") != "before":
            asked.set()
            await is_done.wait()

    async def judge(ctx: JudgeContext) -> None:
        ctx.verify("before", "before")
        slow = ctx.extract(Found, "x") if asks_for == "values" else ctx.settle(ctx.verify("slow", "slow"))
        asking = asyncio.create_task(slow)
        await asked.wait()
        if cancels:  # as asyncio.wait_for after its timeout
            asking.cancel()
            await asyncio.wait({asking})
            ctx.check("after", asking.cancelled())
        is_done.set()

    judgement = await judged(judge, RuleLLM(pause=pause))
    found = outcomes(judgement)
    assert (found["before"], found["undecided"]) == (("passed", None), ("not_judged", "timeout"))
    if cancels:
        assert found["after"][0] == ("not_judged" if asks_for == "values" else "passed")
    assert_open(judgement)


async def test_extraction_from_a_blocked_page_fails():
    async def judge(ctx: JudgeContext) -> None:
        with pytest.raises(ExtractionFailed) as caught:
            await ctx.extract(Found, "x", source="https://blocked.example/")
        assert caught.value.cause_reason is Reason.CAPTURE_BLOCKED
        ctx.check("after", "a default")

    blocked = missing("https://blocked.example/", CaptureOutcome.CAPTCHA)
    judgement = await judged(judge, shelf=FixedEvidence({"https://blocked.example/": blocked}))
    assert outcomes(judgement) == {
        "after": ("not_judged", "extraction_failed"),
        "extraction": ("not_judged", "extraction_failed"),
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda ctx: 1 / 0, "ZeroDivisionError"),
        (lambda ctx: (ctx.check("a", 1), ctx.check("a", 1)), "in use"),
        (lambda ctx: exit(3), "SystemExit"),
    ],
)
async def test_exception_in_a_judge_raises_judge_bug_with_traceback(
    wrong: Callable[[JudgeContext], object], message: str
):
    async def judge(ctx: JudgeContext) -> None:
        wrong(ctx)

    with pytest.raises(JudgeBug, match=message) as caught:
        await judged(judge)
    assert "in judge" in caught.value.traceback


async def test_judge_that_ignores_the_deadline_raises_judge_bug():
    async def judge(ctx: JudgeContext) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    with pytest.raises(JudgeBug, match=r"within 0\.01 s"):
        await judged(judge, deadline_s=0.01)


@pytest.mark.parametrize("wait", ["extract", "settle", "extract in a task"])
async def test_judge_that_waits_for_the_service_at_the_deadline_is_not_a_bug(wait: str):
    async def judge(ctx: JudgeContext) -> None:
        leaf = ctx.verify("declared", "declared")
        asked = ctx.settle(leaf) if wait == "settle" else ctx.extract(Found, "x")
        await (asyncio.wait({asyncio.create_task(asked)}) if "task" in wait else asked)

    async def pause(request: LLMRequest) -> None:
        await asyncio.Event().wait()

    judgement = await judged(judge, RuleLLM(pause=pause), deadline_s=0.02)
    assert outcomes(judgement) == {
        "declared": ("not_judged", "extraction_failed"),
        "extraction": ("not_judged", "extraction_failed"),
    }
    assert judgement.score == Score(value=None, low=0.0, high=1.0)


async def test_timeout_error_raised_by_the_judge_is_a_judge_bug():
    async def judge(ctx: JudgeContext) -> None:
        raise TimeoutError("mine")

    with pytest.raises(JudgeBug, match="mine"):
        await judged(judge, deadline_s=60)


async def test_leaves_unsettled_at_the_deadline_are_not_judged(monkeypatch: pytest.MonkeyPatch):
    async def judge(ctx: JudgeContext) -> None:
        await ctx.settle(ctx.verify("quick", "quick"))
        ctx.verify("slow", "slow")
        ctx.check("code", False)

    async def pause(request: LLMRequest) -> None:
        if request.parts["claim"] == "slow":
            await until_the_deadline(monkeypatch)

    judgement = await judged(judge, RuleLLM(pause=pause), deadline_s=600)
    assert outcomes(judgement) == {
        "quick": ("passed", None),
        "slow": ("not_judged", "timeout"),
        "code": ("failed", "check_false"),
    }


async def test_closed_page_cache_ends_the_run_without_a_verdict():
    flights: SingleFlight[str, Evidence] = SingleFlight()
    waiting = asyncio.Event()

    async def forever() -> Evidence:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def evidence_for(url: str) -> Evidence:
        return page(url, TEXT) if url == URL else await flights.run(url, forever)

    async def judge(ctx: JudgeContext) -> None:
        ctx.verify("claim", "n: refuted", [URL, "https://lost.example/"])

    running = asyncio.create_task(judged(judge, RuleLLM(lambda request: False), evidence_for))
    await waiting.wait()
    await flights.aclose()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_cancelling_a_run_cancels_every_request():
    started = asyncio.Barrier(3)

    async def pause(request: LLMRequest) -> None:
        await started.wait()
        await asyncio.Event().wait()

    async def judge(ctx: JudgeContext) -> None:
        ctx.verify("a", "x")

    llm = RuleLLM(pause=pause)
    task = asyncio.create_task(judged(judge, llm))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert llm.in_flight == 0


async def test_judge_without_leaves_scores_zero_and_is_complete():
    async def judge(ctx: JudgeContext) -> None:
        return None

    judgement = await judged(judge)
    assert judgement.complete
    assert judgement.score.value == 0.0
