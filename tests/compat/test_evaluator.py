"""Methods of the evaluator: arguments, errors and reported values."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from mind2web2 import AggregationStrategy, CacheFileSys, Evaluator, VerificationNode
from mind2web2.eval_toolkit import BinaryEvalResult, Extractor, Verifier, create_evaluator
from tests.compat.scripted import LOGGER, ScriptedClient, initialized_evaluator, nodes, tree


class Names(BaseModel):
    names: list[str] = []


class Strict(BaseModel):
    name: str


def arguments(**more: Any) -> dict[str, Any]:
    return {
        "client": ScriptedClient(),
        "answer": "the answer",
        "global_cache": None,
        "global_semaphore": asyncio.Semaphore(1),
        "logger": LOGGER,
        **more,
    }


def test_initialize_creates_the_root():
    e = Evaluator()
    root = e.initialize(
        "t1", AggregationStrategy.SEQUENTIAL, "me", "answer_1.md", **arguments(task_description="Do it")
    )
    assert root is e.root
    assert (root.id, root.desc, root.critical, root.strategy) == ("root", "Do it", False, "sequential")


def test_missing_task_description_gets_a_default():
    e = initialized_evaluator(ScriptedClient())
    assert e.root is not None
    assert e.root.desc == e.verifier.task_description == "Evaluation for task"


@pytest.mark.parametrize("missing", ["client", "answer", "global_cache", "global_semaphore", "logger"])
def test_missing_keyword_raises_type_error(missing: str):
    given = arguments()
    del given[missing]
    with pytest.raises(TypeError):
        Evaluator().initialize("t", **given)


def test_unknown_keyword_raises_type_error():
    with pytest.raises(TypeError):
        Evaluator().initialize("t", **arguments(answers="x"))


def test_evaluator_constructor_takes_no_arguments():
    with pytest.raises(TypeError):
        Evaluator("t")  # type: ignore[call-arg]


def test_empty_names_become_unknown():
    summary = initialized_evaluator(ScriptedClient(), agent_name="", answer_name=None).get_summary()
    assert (summary["agent_name"], summary["answer_name"]) == ("unknown_agent", "unknown_answer")


def test_second_initialize_creates_a_new_root_and_keeps_ids_and_infos():
    e = initialized_evaluator(ScriptedClient())
    old = e.root
    e.add_leaf("a", "a")
    e.add_custom_info({"x": 1})
    e.initialize("task", **arguments())
    assert e.root is not old
    assert e.find_node("a") is None
    assert e.add_leaf("a", "a").id == "a_1"
    assert e.get_summary()["eval_breakdown"][0]["info"] == [{"custom": {"x": 1}}]


async def test_calls_before_initialize_raise_value_error():
    e = Evaluator()
    with pytest.raises(ValueError, match="initialize"):
        await e.extract("p", Names)
    with pytest.raises(ValueError, match="initialize"):
        await e.verify("c", VerificationNode(id="a", desc="a"))
    with pytest.raises(ValueError, match="initialize"):
        e.add_leaf("a", "a")
    await e.close()


def test_summary_before_initialize_is_empty():
    summary = Evaluator().get_summary()
    assert summary["final_score"] == 0.0
    assert summary["judge_model"] == summary["extract_model"] == "unknown"
    assert summary["eval_breakdown"] == []
    assert "tree_statistics" not in summary
    assert Evaluator().score() == 0.0


async def test_later_changes_do_not_alter_the_recorded_extraction():
    e = initialized_evaluator(ScriptedClient(values={"Names": Names(names=["Ann"])}))
    found = await e.extract("Who?", Names, "people")
    found.names.append("Bob")
    assert e.get_summary()["eval_breakdown"][0]["info"] == [{"people": {"names": ["Ann"]}}]


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


def test_summary_without_info_contains_no_info_entry():
    info = initialized_evaluator(ScriptedClient()).get_summary()["eval_breakdown"][0]["info"]
    assert info == [{"no_info": "No information recorded"}]


@pytest.mark.parametrize(
    ("given", "judge", "extract"),
    [
        ({}, "gpt-6-luna", "gpt-6-luna"),
        ({"default_model": "gpt-4.1"}, "gpt-4.1", "gpt-4.1"),
        ({"verify_model": "v"}, "v", "gpt-6-luna"),
        ({"extract_model": "x", "default_model": "d"}, "d", "x"),
        ({"verify_model": None}, None, "gpt-6-luna"),
    ],
)
def test_summary_names_judge_and_extract_models(given: dict[str, Any], judge: str | None, extract: str | None):
    summary = initialized_evaluator(ScriptedClient(), **given).get_summary()
    assert (summary["judge_model"], summary["extract_model"]) == (judge, extract)


async def test_extractor_and_verifier_use_their_own_models():
    client = ScriptedClient()
    e = initialized_evaluator(client, extract_model="x", verify_model="v")
    assert (e.extractor.MODEL_NAME, e.verifier.MODEL_NAME) == ("x", "v")
    await e.extract("p", Names)
    await e.verify("c", None)
    assert [call["model"] for call in client.calls] == ["x", "v", "v"]


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


def test_verifier_and_extractor_accept_a_model():
    given = arguments(task_description="task")
    assert Verifier(**given, model="m").MODEL_NAME == "m"
    assert Extractor(**given).MODEL_NAME == "gpt-6-luna"


async def test_extraction_rejects_a_list_of_sources():
    with pytest.raises(ValueError, match="source must be a string or None"):
        await initialized_evaluator(ScriptedClient()).extract("p", Names, source=["https://a.com"])  # type: ignore[arg-type]


async def test_use_screenshot_without_a_source_raises_type_error():
    with pytest.raises(TypeError):
        await initialized_evaluator(ScriptedClient()).extract("p", Names, use_screenshot=False)


@pytest.mark.parametrize("value", [RuntimeError("down"), None])
async def test_failed_extraction_returns_defaults(value: Exception | None):
    e = initialized_evaluator(ScriptedClient(values={"Names": value}))
    assert await e.extract("p", Names) == Names()
    assert e.get_summary()["eval_breakdown"][0]["info"] == [{"extraction": {"names": []}}]


async def test_failed_extraction_gives_none_for_required_fields():
    e = initialized_evaluator(ScriptedClient(values={"Strict": RuntimeError("down")}))
    found = await e.extract("p", Strict)
    assert isinstance(found, Strict)
    assert set(found.model_dump().values()) == {None}
    assert e.get_summary()["status"] == "incomplete"


async def test_extractors_called_directly_record_nothing():
    e = initialized_evaluator(ScriptedClient(values={"Names": Names(names=["Ann"])}))
    assert (await e.extractor.simple_extract("p", Names, "None")).names == ["Ann"]
    assert e.get_summary()["eval_breakdown"][0]["info"] == [{"no_info": "No information recorded"}]


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


@pytest.mark.parametrize("trials", [2, 4, -1, "three", 2.5])
async def test_invalid_number_of_votes_fails_without_a_call(trials: Any):
    client = ScriptedClient()
    e = initialized_evaluator(client)
    leaf = e.add_leaf("a", "a")
    assert not await e.verify("c", leaf, num_trials=trials)
    assert (leaf.status, leaf.score, client.calls) == ("failed", 0.0, [])


async def test_even_number_of_votes_is_valid_without_majority_vote():
    assert await initialized_evaluator(ScriptedClient()).verify("c", None, num_trials=2, majority_vote=False)


@pytest.mark.parametrize("extra", [[None], ["p"], 5])
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


async def test_node_outside_the_tree_is_blocked_only_by_extra_prerequisites():
    e = initialized_evaluator(ScriptedClient())
    failed = e.add_custom_node(False, "k", "k")
    outside = VerificationNode(id="o", desc="o")
    assert await e.verify("c", outside)
    assert not await e.verify("c", outside, extra_prerequisites=[failed])


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


def test_binary_result_has_reasoning_and_result():
    made = BinaryEvalResult(reasoning="because", result=True)
    assert (made.reasoning, made.result) == ("because", True)


async def test_date_in_an_extraction_is_recorded_as_a_date():
    from datetime import date

    class When(BaseModel):
        day: date = date(2024, 5, 1)

    e = initialized_evaluator(ScriptedClient())
    await e.extract("p", When)
    assert e.get_summary()["eval_breakdown"][0]["info"] == [{"extraction": {"day": date(2024, 5, 1)}}]


async def test_close_stops_the_given_browser_manager():
    class Manager:
        stopped = False

        async def stop(self) -> None:
            self.stopped = True

    manager = Manager()
    e = initialized_evaluator(ScriptedClient(), browser_manager=manager)
    await e.close()
    assert manager.stopped
