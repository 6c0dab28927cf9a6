"""Methods of the evaluator: arguments, errors and reported values."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from mind2web2 import CacheFileSys
from mind2web2.eval_toolkit import Extractor, Verifier, create_evaluator
from tests.compat.scripted import LOGGER, ScriptedClient, initialized_evaluator, nodes, tree


class Names(BaseModel):
    names: list[str] = []


def arguments(**more: Any) -> dict[str, Any]:
    return {
        "client": ScriptedClient(),
        "answer": "the answer",
        "global_cache": None,
        "global_semaphore": asyncio.Semaphore(1),
        "logger": LOGGER,
        **more,
    }


async def test_infos_are_ordered_extractions_ground_truths_custom():
    e = initialized_evaluator(ScriptedClient())
    e.add_custom_info({"n": 1}, "stats", "numbers")
    e.add_custom_info({"n": 2}, "stats")
    e.add_ground_truth({"year": 1990})
    e.add_ground_truth({"year": 1991}, "expected")
    await e.extract("p", Names)
    assert e.get_summary()["eval_breakdown"][0]["info"] == [
        {"extraction": {"names": []}},
        {"ground_truth": {"year": 1990}},
        {"expected": {"year": 1991}},
        {"numbers": {"n": 1}},
        {"stats": {"n": 2}},
    ]


def test_the_summary_has_the_public_keys_first_and_in_order():
    summary = initialized_evaluator(ScriptedClient(), agent_name="me", answer_name="answer_1.md").get_summary()
    assert list(summary)[:7] == [
        "agent_name", "answer_name", "final_score", "judge_model", "extract_model", "eval_breakdown", "tree_statistics",
    ]  # fmt: skip
    assert list(nodes(summary)["root"])[:7] == ["id", "desc", "critical", "score", "status", "strategy", "children"]
    assert summary["tree_statistics"] == {"depth": 0, "total_nodes": 1, "leaf_nodes": 1}


def test_create_evaluator_sets_attributes_from_arguments():
    given = arguments(task_description="task")
    extractor, verifier = create_evaluator(**given)
    for each, kind in ((extractor, Extractor), (verifier, Verifier)):
        assert isinstance(each, kind)
        assert each.client is given["client"]
        assert (each.task_description, each.answer, each.MODEL_NAME) == ("task", "the answer", "gpt-6-luna")
        assert each.cache is given["global_cache"]
        assert each.semaphore is given["global_semaphore"]
        assert each.logger is LOGGER
        assert each.config.default_num_trials == 3
        assert each.pdf_parser is not None
        assert each.browser_manager is not None


async def test_claim_none_raises_type_error_and_leaves_the_leaf_unchanged():
    e = initialized_evaluator(ScriptedClient())
    leaf = e.add_leaf("a", "a")
    for asked in (e.verify(None, leaf), e.verifier.simple_verify(None, leaf)):  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            await asked
    assert leaf.status == "initialized"


async def test_batch_returns_results_in_order_with_exceptions_in_place():
    e = initialized_evaluator(ScriptedClient({"c": False}))
    results = await e.batch_verify([("a", None, None, None), (None, None, None, None), ("c", None, None, "None")])  # type: ignore[list-item]
    assert results[0] is True
    assert isinstance(results[1], TypeError)
    assert results[2] is False


async def test_unknown_keywords_of_verify_are_ignored():
    client = ScriptedClient()
    assert await initialized_evaluator(client).verify("c", None, temperature=0.7, colour="red")
    assert client.calls
    assert all(call.keys() == {"model", "messages", "response_format"} for call in client.calls)


async def test_verify_without_a_node_writes_nothing_and_is_not_blocked():
    e = initialized_evaluator(ScriptedClient({"c": True}))
    failed = e.add_custom_node(False, "k", "k")
    assert await e.verify("c", None, extra_prerequisites=[failed])
    assert tree(e.get_summary()) == {"root": ("failed", 0.0), "k": ("failed", 0.0)}


@pytest.mark.parametrize("trials", [4, -1, "three"])
async def test_invalid_number_of_votes_fails_without_a_call(trials: Any):
    client = ScriptedClient()
    e = initialized_evaluator(client)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, num_trials=trials)
    assert (leaf.status, leaf.score, client.calls) == ("failed", 0.0, [])


@pytest.mark.parametrize("extra", [["p"], 5])
async def test_invalid_extra_prerequisite_fails_without_a_call(extra: Any):
    client = ScriptedClient()
    e = initialized_evaluator(client)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, extra_prerequisites=extra)
    assert (leaf.status, client.calls) == ("failed", [])


async def test_cancelled_verify_leaves_the_node_skipped():
    client = HangingClient()
    e = initialized_evaluator(client)
    leaf = e.add_leaf("a", "a")
    task = asyncio.create_task(e.verify("c", leaf))
    await client.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (leaf.status, leaf.score) == ("skipped", 0.0)


class HangingClient(ScriptedClient):
    """Client that never replies."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def async_response(self, **keywords: Any) -> Any:
        self.asked.set()
        await asyncio.Event().wait()


async def test_verifier_called_directly_ignores_prerequisites(tmp_path: Any):
    cache = CacheFileSys(tmp_path)
    cache.put_web("https://a.com", "text", None)
    e = initialized_evaluator(ScriptedClient(), cache)
    e.add_custom_node(False, "k", "k")
    leaf = e.add_leaf("a", "a")
    assert await e.verifier.simple_verify("c", leaf, num_trials=1)
    assert await e.verifier.verify_by_url("c", "https://a.com", leaf, use_screenshot=False)
    assert await e.verifier.verify_by_urls("c", ["https://a.com"], leaf, additional_instruction="strictly")
    assert leaf.status == "passed"
    with pytest.raises(AssertionError):
        await e.verifier.verify_by_urls("c", [], leaf)
