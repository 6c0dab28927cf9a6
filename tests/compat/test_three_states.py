"""Faults: the compatible fields keep the public number, our own fields report "not judged"."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from pydantic import BaseModel

from judges.analysis.recomputation import score_differences
from judges.errors import LLMRejected
from mind2web2 import CacheFileSys, Evaluator, VerificationNode
from mind2web2.metrics import is_without_result
from mind2web2.utils.page_info_retrieval import Capture
from tests.compat.scripted import ScriptedClient, initialized_evaluator, nodes, outcomes, tree


class Found(BaseModel):
    names: list[str] = []


UNKNOWN = {"value": None, "low": 0.0, "high": 1.0}
NO_PARSED_VERDICT = None


@pytest.mark.parametrize(
    ("votes", "reason"),
    [
        ([RuntimeError("down")], "llm_unavailable"),
        ([TimeoutError()], "timeout"),
        ([LLMRejected("wrong key", status=401)], "llm_rejected"),
        ([NO_PARSED_VERDICT], "llm_output_unusable"),
    ],
)
async def test_fault_is_failed_in_public_fields_and_not_judged_in_ours(votes: list[Any], reason: str):
    e = initialized_evaluator(ScriptedClient({"c": votes}))
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf)
    assert (leaf.status, leaf.score) == ("failed", 0.0)
    summary = e.get_summary()
    assert outcomes(summary)["a"] == ("not_judged", reason)
    assert (summary["final_score"], summary["status"], summary["score"]) == (0.0, "incomplete", UNKNOWN)
    assert summary["score_strict"] == UNKNOWN


@pytest.mark.parametrize(
    "votes", [[True, RuntimeError("x"), True], [RuntimeError("x"), True, True], [True, False, None]]
)
async def test_one_lost_vote_is_not_judged(votes: list[Any]):
    e = initialized_evaluator(ScriptedClient({"c": votes}))
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf)
    assert leaf.status == "failed"
    assert outcomes(e.get_summary())["a"][0] == "not_judged"


async def test_leaf_skipped_by_a_gate_that_was_not_judged_is_unknown():
    e = initialized_evaluator(ScriptedClient({"k": RuntimeError("down")}))
    gate, leaf = e.add_leaf("k", "k", critical=True), e.add_leaf("l", "l")
    await e.verify("k", gate)
    assert not await e.verify("l", leaf)
    summary = e.get_summary()
    assert tree(summary) == {"root": ("failed", 0.0), "k": ("failed", 0.0), "l": ("skipped", 0.0)}
    assert outcomes(summary)["l"] == ("skipped", "gated")
    assert nodes(summary)["l"]["blocked_by"] == "k"
    assert summary["score"] == UNKNOWN


async def test_known_failed_gate_makes_the_score_certain():
    e = initialized_evaluator(ScriptedClient({"c": RuntimeError("down")}))
    await e.verify("c", e.add_leaf("a", "a"))
    e.add_custom_node(False, "k", "k")
    summary = e.get_summary()
    assert summary["status"] == "incomplete"
    assert summary["score"] == {"value": 0.0, "low": 0.0, "high": 0.0}


async def test_leaves_decided_after_a_failed_extraction_are_not_judged():
    e = initialized_evaluator(ScriptedClient({"no": False}, {"Found": RuntimeError("down")}))
    before = e.add_custom_node(True, "before", "before", critical=False)
    found = await e.extract("p", Found)
    e.add_custom_node(bool(found.names), "given", "given", critical=False)
    assert await e.verify("yes", e.add_leaf("l", "l"))
    assert not await e.verify("no", e.add_leaf("m", "m"))
    summary = e.get_summary()
    extraction_failed = ("not_judged", "extraction_failed")
    assert outcomes(summary) == {
        "before": ("passed", None),
        "given": extraction_failed,
        "l": extraction_failed,
        "m": extraction_failed,
    }
    assert before.status == "passed"
    assert tree(summary)["root"] == ("partial", 0.5)
    assert (summary["status"], summary["final_score"]) == ("incomplete", 0.5)
    assert summary["score"] == UNKNOWN
    assert "down" in summary["extraction_error"]


async def test_leaves_decided_after_a_claim_without_a_node_that_was_not_judged_are_not_judged():
    e = initialized_evaluator(ScriptedClient({"c": RuntimeError("down")}))
    e.add_custom_node(True, "before", "before", critical=False)
    is_right = await e.verify("c", None)
    e.add_custom_node(is_right, "after", "after", critical=False)
    summary = e.get_summary()
    assert outcomes(summary) == {"before": ("passed", None), "after": ("not_judged", "llm_unavailable")}
    assert (summary["status"], summary["final_score"]) == ("incomplete", 0.5)
    assert summary["score"] == UNKNOWN
    assert "down" in summary["extraction_error"]
    assert is_without_result(summary)


async def result_of(e: Evaluator, leaf: VerificationNode) -> bool:
    return await e.verify("c", leaf)


async def results_of_all(e: Evaluator, leaf: VerificationNode) -> bool:
    return all(await e.batch_verify([("c", None, leaf, None)]))


async def result_of_skipped_claim(e: Evaluator, leaf: VerificationNode) -> bool:
    await e.verify("c", leaf)
    return await e.verify("d", e.add_leaf("d", "d"), extra_prerequisites=[leaf])


async def result_of_an_assertion(e: Evaluator, leaf: VerificationNode) -> bool:
    with pytest.raises(AssertionError):
        assert await e.verify("c", leaf)
    return False


async def number_of_results(e: Evaluator, leaf: VerificationNode) -> bool:
    results = await e.batch_verify([("c", None, leaf, None)])
    return sum(result for result in results if isinstance(result, bool)) >= 1


USES = [
    result_of_an_assertion,
    number_of_results,
    result_of,
    results_of_all,
    result_of_skipped_claim,
]


@pytest.mark.parametrize("result_in", USES)
async def test_check_of_the_script_on_a_result_that_was_not_judged_is_not_judged(
    result_in: Callable[[Evaluator, VerificationNode], Coroutine[Any, Any, bool]],
):
    e = initialized_evaluator(ScriptedClient({"c": RuntimeError("down")}))
    e.add_custom_node(False, "before", "before", critical=False)
    is_right = await result_in(e, e.add_leaf("a", "a"))
    e.add_custom_node(is_right, "custom", "custom", critical=False)
    assigned = e.add_leaf("assigned", "assigned")
    assigned.score, assigned.status = float(is_right), "failed"
    assert await e.verify("judged", e.add_leaf("judged", "judged"))
    summary = e.get_summary()
    found = outcomes(summary)
    assert found["before"] == ("failed", "check_false")
    assert found["custom"] == found["assigned"] == ("not_judged", "llm_unavailable")
    assert found["judged"] == ("passed", None)
    assert [nodes(summary)["custom"][bound] for bound in ("low", "high")] == [0.0, 1.0]


async def test_check_of_a_script_that_ignores_results_is_certain_after_a_fault():
    e = initialized_evaluator(ScriptedClient({"c": RuntimeError("down")}))

    async def ignoring() -> None:
        await e.verify("c", e.add_leaf("a", "a"))
        await result_of(e, e.add_leaf("c", "c"))
        tasks: list[Coroutine[Any, Any, bool]] = [e.verify("c", e.add_leaf("d", "d"))]
        if tasks:
            await asyncio.gather(*tasks)
        async with asyncio.TaskGroup() as group:
            group.create_task(e.verify("c", e.add_leaf("h", "h")))

    await ignoring()
    e.add_custom_node(False, "gate", "gate")
    assert e.get_summary()["score"] == {"value": 0.0, "low": 0.0, "high": 0.0}


class SlowBrowser:
    """Browser manager whose captures time out."""

    async def capture(self, url: str, logger: Any) -> Capture:
        return Capture(error="timeout after 90 s")


@pytest.mark.parametrize(
    ("url", "outcome"),
    [("https://a.com/slow", ("not_judged", "capture_failed")), ("see above", ("failed", "check_false"))],
)
async def test_leaf_decided_after_a_page_that_the_script_cannot_read_is_not_judged(url: str, outcome: tuple[str, str]):
    e = initialized_evaluator(ScriptedClient(), browser_manager=SlowBrowser())
    assert await e.extractor.get_page_info(url) == (None, None)
    e.add_custom_node(False, "has_text", "The page has text")
    summary = e.get_summary()
    assert outcomes(summary)["has_text"] == outcome
    assert not is_without_result(summary)


class Silent(ScriptedClient):
    """Client that replies to nothing."""

    async def async_response(self, **keywords: Any) -> Any:
        await asyncio.Event().wait()


class SilentBrowser:
    """Browser manager whose captures never end."""

    async def capture(self, url: str, logger: Any) -> Capture:
        await asyncio.Event().wait()
        raise AssertionError


REQUESTS: list[Callable[[Evaluator], Coroutine[Any, Any, Any]]] = [
    lambda e: e.extract("p", Found),
    lambda e: e.verify("c", None),
    lambda e: e.extractor.get_page_info("https://a.com/silent"),
]


@pytest.mark.parametrize("request_of", REQUESTS, ids=["extraction", "claim", "page"])
@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_leaf_decided_after_a_request_that_did_not_end_is_not_judged(
    request_of: Callable[[Evaluator], Coroutine[Any, Any, Any]], is_cancelled: bool
):
    e = initialized_evaluator(Silent(), browser_manager=SilentBrowser())
    request = asyncio.create_task(request_of(e))
    await asyncio.sleep(0)
    if is_cancelled:  # as asyncio.wait_for after its timeout
        request.cancel()
        await asyncio.wait({request})
    e.add_custom_node(False, "d", "d")
    summary = e.get_summary()
    request.cancel()
    assert (summary["status"], summary["score"]) == ("incomplete", UNKNOWN)
    assert summary["extraction_reasons"] == ["timeout"]


async def test_strict_score_counts_a_page_only_with_a_quote(tmp_path: Any):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "The tower was finished in 1889 after two years.", None)

    class Quoting(ScriptedClient):
        async def async_response(self, **keywords: Any) -> Any:
            reply = await super().async_response(**keywords)
            quotes = {"quoted": ["finished in 1889"], "made up": ["finished in 1989"]}.get(self.claims[-1], [])
            return reply.model_copy(update={"quotes": quotes})

    e = initialized_evaluator(Quoting(), cache)
    for claim in ("quoted", "made up", "unquoted"):
        await e.verify(claim, e.add_leaf(claim, claim), "https://a.com")
    await e.verify("about the answer", e.add_leaf("answer", "answer"))
    summary = e.get_summary()
    assert summary["score"]["value"] == 1.0
    assert summary["score_strict"]["value"] == 0.5
    [quote] = nodes(summary)["quoted"]["quotes"]
    assert quote["text"] == "finished in 1889"


@pytest.mark.parametrize("case", ["skipped by a fault", "extraction"])
async def test_replay_agrees_with_the_score_after_a_fault(case: str):
    e = initialized_evaluator(ScriptedClient({"c": RuntimeError("down")}, {"Found": RuntimeError("down")}))
    e.add_custom_node(True, "before", "before", critical=False)
    if case == "extraction":
        await e.extract("p", Found)
        e.add_custom_node(True, "after", "after", critical=False)
    else:
        gate, leaf = e.add_leaf("k", "k", critical=True), e.add_leaf("l", "l")
        for claim, node in (("c", gate), ("d", leaf), ("again", gate)):
            await e.verify(claim, node)
    summary = e.get_summary()
    assert (summary["status"], summary["score"]["value"]) == ("incomplete", None)
    assert list(score_differences(summary)) == []
