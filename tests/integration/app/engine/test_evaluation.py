"""Evaluation of answer folders with the real runtime, offline. All pages come from a cache in the public layout."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from app.engine import pipeline
from app.engine.runtime import Runtime
from app.progress import Stage
from judges.agent_figures import summary_fields
from tests.integration.app.judged_folder import (
    ANSWER,
    JUDGE,
    RAISES,
    SCRIPT,
    SCRIPT_OF_TWO,
    AnswerFolder,
    stored_result,
)
from tests.standin.faults import EMPTY
from tests.standin.llm import StandInLLM

DATED_SCRIPT = SCRIPT.replace(
    "    return evaluator",
    """
    import os
    from mind2web2.results import eval_date
    dates = {"variable": os.environ.get("MIND2WEB2_EVAL_DATE"), "function": eval_date()}
    evaluator.add_custom_info(dates, "dates")
    return evaluator""",
)


@pytest.fixture
def folder(tmp_path: Path) -> AnswerFolder:
    created = AnswerFolder(tmp_path)
    created.cache_page("https://towns.example/vellmar", "The old bridge of Vellmar was built in 1764.")
    created.cache_page("https://towns.example/arches", "This page is about the town hall and its clock.")
    return created


async def test_answers_are_judged_with_pages_of_public_cache(folder: AnswerFolder) -> None:
    (judged,) = await folder.evaluate()

    result = stored_result(judged)
    assert result["score"] == {"value": 0.5, "low": 0.5, "high": 0.5}
    assert [page["outcome"] for page in result["pages"]] == ["ok", "ok"]
    assert judged.outcome.result == summary_fields(result)
    assert (folder.out / "otter" / "bridge" / "answer_1" / "answer_1.md").read_text() == ANSWER
    assert folder.observer.stages[0] is Stage.CAPTURING
    assert folder.observer.stages[-1] is Stage.STORING


async def test_evaluation_date_reaches_the_script_and_is_an_input_of_the_result(
    folder: AnswerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_judge("bridge", DATED_SCRIPT)
    monkeypatch.setenv("MIND2WEB2_EVAL_DATE", "2026-10-31")
    (judged,) = await folder.evaluate(in_process=False)
    result = stored_result(judged)
    assert result["eval_date"] == "2026-10-31"
    assert result["eval_breakdown"][0]["info"] == [{"dates": {"variable": "2026-10-31", "function": "2026-10-31"}}]
    assert (await folder.evaluate(in_process=False))[0].reused
    monkeypatch.delenv("MIND2WEB2_EVAL_DATE")
    (again,) = await folder.evaluate(in_process=False)
    assert (again.reused, again.planned.reason) == (False, "eval_date changed")


async def test_changed_answer_judge_or_model_is_judged_again(folder: AnswerFolder) -> None:
    await folder.evaluate()
    settings = folder.settings()
    assert [one.reason for one in await folder.plan(settings)] == ["its last result is still valid"]
    assert [one.reason for one in await folder.plan(settings, model="gpt-6-luna")] == ["it was judged by lexical"]

    folder.write_judge("bridge", JUDGE + "\n# changed\n")
    assert [one.reason for one in await folder.plan(settings)] == ["the judge changed"]

    folder.write_answer("bridge", 1, ANSWER + " Really.")
    (planned,) = await folder.plan(settings)
    assert (planned.reason, planned.to_judge) == ("the answer changed", True)


async def test_failing_judge_does_not_affect_others(folder: AnswerFolder) -> None:
    folder.write_judge("raises", RAISES)
    folder.write_judge("unreadable", "def (")
    for task in ("raises", "unreadable", "unheard_of"):
        folder.write_answer(task, 1, "no pages")

    ended = {one.outcome.task_id: one for one in await folder.evaluate()}

    assert ended["bridge"].outcome.complete
    codes = {task: one.outcome.error_code for task, one in ended.items() if one.outcome.result is None}
    assert codes == {"raises": "JUDGE_BUG", "unreadable": "JUDGE_BUG", "unheard_of": "UNKNOWN_TASK"}
    assert "my own bug" in (ended["raises"].error or "")
    assert "ZeroDivisionError" in (ended["raises"].error or "")
    assert sorted(folder.observer.finished_tasks) == sorted(ended)
    assert not (folder.out / "otter" / "unheard_of").exists()
    for task, error in (("raises", "my own bug"), ("unreadable", "invalid syntax")):
        answer = folder.out / "otter" / task / "answer_1"
        note = json.loads((answer / "failed.json").read_text())
        assert note["answer_name"] == "answer_1.md" and error in note["error"] + note["traceback"]
        assert not (answer / "results").exists()
        assert len(list((answer / "logs").glob("*_answer_1.log"))) == 1


async def test_bug_that_shows_in_one_answer_does_not_affect_others(
    folder: AnswerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate, error = pipeline.evaluate, KeyError("tally")

    async def evaluate_with_bug(runtime: Runtime, case: pipeline.JudgingCase, **options: Any) -> dict[str, Any]:
        if case.answer.name == "answer_2.md":
            raise ExceptionGroup("tasks", [error])
        return await evaluate(runtime, case, **options)

    monkeypatch.setattr(pipeline, "evaluate", evaluate_with_bug)
    folder.write_answer("bridge", 2)
    folder.write_answer("bridge", 3)

    judged, failed, other = await folder.evaluate()

    assert judged.outcome.complete and other.outcome.complete
    assert (failed.outcome.result, failed.outcome.error_code) == (None, "INTERNAL")
    assert "KeyError: 'tally'" in str(failed.error) and "Traceback" in str(failed.error)
    note = json.loads((folder.out / "otter" / "bridge" / "answer_2" / "failed.json").read_text())
    assert "bug in assay" in note["error"] and "evaluate_with_bug" in note["traceback"]


async def test_full_disk_ends_the_evaluation(folder: AnswerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_nothing(*_: object, **__: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("mind2web2.evaluation.write_json", write_nothing)
    with pytest.raises(ExceptionGroup) as raised:
        await folder.evaluate()
    assert raised.group_contains(OSError, match="No space left")


async def test_incomplete_result_is_completed_by_the_next_run(folder: AnswerFolder) -> None:
    folder.write_judge("bridge", SCRIPT_OF_TWO)
    async with StandInLLM(fault_for=lambda call: EMPTY if "nine arches" in call.claim else None) as server:
        settings: dict[str, Any] = {"model": "openai/gpt-6-luna", "openai_base_url": server.base_url}
        (first,) = await folder.evaluate(**settings)
        assert first.outcome.result is not None
        assert first.outcome.result["status"] == "incomplete"

        server.fault_for = None
        server.calls.clear()
        (planned,) = await folder.plan(folder.settings(**settings), model="gpt-6-luna")
        assert (planned.reason, planned.to_judge) == ("its last result is incomplete", True)
        (second,) = await folder.evaluate(**settings)
        asked = [call.claim for call in server.calls]
        (third,) = await folder.evaluate(**settings)

    assert second.outcome.complete
    assert second.outcome.result is not None
    assert asked == ["The old bridge of Vellmar has nine arches"] * 2
    assert (second.outcome.result["usage"]["calls"], second.outcome.result["usage"]["cached_calls"]) == (2, 2)
    assert third.reused
    assert len(server.calls) == len(asked)
