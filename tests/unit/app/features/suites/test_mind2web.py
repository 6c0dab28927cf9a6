"""Steps of the published JSON evaluated with a scripted model.

Each edge case of docs/mind2web-rules.md is a task in the published format with figures that were
calculated manually.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.features.suites.journals import MemoryJournal
from app.features.suites.mind2web import Mind2WebRun
from app.features.suites.run_options import Mind2WebRunIn
from app.features.suites.suite_run import SuiteModel, run_steps
from app.settings import load_settings
from judges.errors import LLMOutputUnusable, LLMUnavailable, UnusableKind
from judges.llm.client import LLMReply, LLMRequest
from rubrics.verdict import Usage
from tests.fakes.mind2web import (
    FIGURES_SCORED_ZERO,
    FIGURES_SKIPPED,
    NINE_RANKS,
    action,
    items,
    nine_steps,
    stand_in_reply,
    task,
    write_scores,
    write_split,
)

ReplyFunction = Callable[[str], "str | Exception"]


class Model:
    """``LLMClient`` whose reply is a function of the last message."""

    def __init__(self, reply: ReplyFunction = stand_in_reply) -> None:
        self._says = reply
        self.requests: list[LLMRequest] = []

    async def complete(self, request: LLMRequest) -> LLMReply:
        self.requests.append(request)
        await asyncio.sleep(0)
        reply_text = self._says(str(request.messages[-1]["content"]))
        if isinstance(reply_text, Exception):
            raise reply_text
        return LLMReply(text=reply_text, parsed=None, model=request.model, usage=Usage(calls=1, usd=0.001))

    async def aclose(self) -> None:
        """Do nothing."""


def opened(
    folder: Path, tasks: Sequence[Any], *, ranks: Mapping[str, Mapping[str, int]] | None = None, **options: Any
) -> Mind2WebRun:
    data = write_split(folder, tasks)
    if ranks is not None:
        options["scores"] = str(write_scores(folder / "scores.pkl", ranks))
    order = Mind2WebRunIn(data=str(data), split="test_task", model="openai/gpt-4o", **options)
    return Mind2WebRun(order, Path, load_settings(data_dir=folder / "data"))


def judged(run: Mind2WebRun, model: Model | None = None) -> list[dict[str, Any]]:
    suite_model = SuiteModel(client=model or Model(), model="gpt-4o")
    return asyncio.run(run_steps(run, MemoryJournal(), suite_model, max_concurrent=3, on_step=lambda *_, **__: None))


def record_of_one_step(folder: Path, reply: ReplyFunction) -> dict[str, Any]:
    """Return the record of a task with one step."""
    [record] = judged(opened(folder, [task("T", [action("a", items())])]), Model(reply))
    return record


def flags(record: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return record["element_acc"], record["action_f1"], record["step_acc"]


def test_prompt_is_sent_as_published(tmp_path: Path):
    model = Model()
    judged(opened(tmp_path, nine_steps()[:1]), model)
    request = model.requests[0]
    assert [message["role"] for message in request.messages] == ["system", *["user", "assistant"] * 3, "user"]
    assert (request.params, request.prompt, request.schema) == (
        {"max_tokens": 50, "temperature": 0.0},
        "mindact@1",
        None,
    )


def test_all_steps_give_the_published_figures(tmp_path: Path):
    found = report_of(tmp_path, Model())
    assert {key: found[key] for key in FIGURES_SCORED_ZERO} == approx_nested(FIGURES_SCORED_ZERO)
    assert {key: found["policies"]["skip"][key] for key in FIGURES_SKIPPED} == approx_nested(FIGURES_SKIPPED)
    assert found["skipped"] == {"no_positive": 1, "positive_outside_top_k": 1, "single_candidate": 1}
    assert found["candidates"]["recall@50"] == pytest.approx(7 / 9)
    assert found["status"] == "complete"


def report_of(folder: Path, model: Model) -> dict[str, Any]:
    run = opened(folder, nine_steps(), ranks=NINE_RANKS)
    return run.figures(judged(run, model))


def approx_nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: approx_nested(each) for key, each in value.items()}
    if isinstance(value, list):
        return [approx_nested(each) for each in value]
    return pytest.approx(value)


def test_model_fault_gives_bounds_and_not_zero(tmp_path: Path):
    def reply(message: str) -> str | Exception:
        return (
            LLMUnavailable("503", status=503)
            if "Do what T1" in message and "ma </button>" in message
            else stand_in_reply(message)
        )

    found = report_of(tmp_path, Model(reply))
    assert (found["status"], found["not_judged"]["by_reason"]) == ("incomplete", {"llm_unavailable": 1})
    assert found["not_judged"]["steps"][0]["id"] == "T1_b"
    assert found["micro"]["step_success"] is None
    low, high = (found["bounds"][end]["micro"]["step_success"] for end in ("low", "high"))
    assert (low, high) == (pytest.approx(3 / 9), pytest.approx(4 / 9))
    assert "element_acc" not in found  # the published keys contain no bounds


def test_empty_reply_selects_no_option(tmp_path: Path):
    empty = LLMOutputUnusable(UnusableKind.EMPTY, "empty", usage=Usage(calls=2))
    record = record_of_one_step(tmp_path, lambda message: empty)
    assert (record["status"], record["prediction"], record["empty_outputs"]) == ("scored", ["", ""], 2)
    refused = LLMOutputUnusable(UnusableKind.FILTERED, "filtered")
    assert record_of_one_step(tmp_path / "b", lambda message: refused)["status"] == "not_judged"


def test_damaged_page_affects_only_its_step(tmp_path: Path):
    broken, lacking, whole = action("a", items()), action("b", items("click")), action("c", items("click"))
    broken["cleaned_html"] = "<html>"
    lacking["pos_candidates"][0]["backend_node_id"] = "77"
    first, second, third = judged(opened(tmp_path, [task("T", [broken, lacking, whole])]))
    assert (first["reason"], second["reason"], third["step_acc"]) == ("page_unusable", "page_unusable", 1)
    assert "task T, action 0 (a): cleaned_html is not well-formed" in first["detail"]
    assert "task T, action 1 (b): candidate '77' is not in cleaned_html" in second["detail"]


def test_predictions_are_scored_without_a_model(tmp_path: Path):
    played = judged(opened(tmp_path, nine_steps()))
    file = tmp_path / "predictions.json"
    given = [[record["id"], *record["prediction"]] for record in played if record["id"] != "T2_b"]
    file.write_text(json.dumps([*given, ["T9_z", "1", "CLICK "]]))
    model, run = Model(), opened(tmp_path, nine_steps(), predictions=str(file))
    records = judged(run, model)
    assert [flags(record) for record in records if record["id"] != "T2_b"] == [
        flags(record) for record in played if record["id"] != "T2_b"
    ]
    metrics = run.figures(records)
    assert metrics["not_judged"]["by_reason"] == {"no_prediction": 1}
    assert (metrics["unknown_ids"], metrics["unknown_count"]) == (["T9_z"], 1)
    assert (metrics["model"], model.requests) == (None, [])
