from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from answers.submission import Answer
from app.engine.result_folder import (
    ResultInputs,
    ResultUnreadable,
    newest_result,
    rejudge_reason,
    write_result,
    write_summaries,
)
from judges.agent_figures import AnswerOutcome
from judges.result import AnswerFolder

AT = datetime(2026, 3, 4, 5, 6, 7).astimezone()  # in local time, as file names are
BASIS = ResultInputs(
    answer_sha256="a1",
    script_sha256="s1",
    model="openai/gpt-6-luna",
    rules={"scoring_version": 3, "eval_date": None},
)


def folder(out: Path, k: int = 1, task_id: str = "bridge") -> AnswerFolder:
    return AnswerFolder(out=out, agent="otter", task_id=task_id, answer_name=f"answer_{k}.md")


def result(score: float = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "status": "complete",
        "final_score": score,
        "score": {"value": score, "low": score, "high": score},
        "answer_sha256": "a1",
        "script": {"sha256": "s1"},
        "model": "openai/gpt-6-luna",
        **more,
    }


def answer(k: int = 1, text: str = "Four words of text") -> Answer:
    return Answer(name=f"answer_{k}.md", text=text)


def test_two_results_in_one_second_are_both_stored_and_the_later_is_newest(tmp_path: Path) -> None:
    write_result(folder(tmp_path), answer(), result(0.25), finished_at=AT)
    later = write_result(folder(tmp_path), answer(), result(0.75), finished_at=AT)

    assert later.name == "20260304_050608_answer_1.md.json"
    newest = newest_result(folder(tmp_path))
    assert newest is not None
    assert newest["final_score"] == 0.75


def test_damaged_result_file_raises_and_is_not_treated_as_missing(tmp_path: Path) -> None:
    path = write_result(folder(tmp_path), answer(), result(), finished_at=AT)
    path.write_text('{"final_score": 0.')

    with pytest.raises(ResultUnreadable, match=path.name):
        newest_result(folder(tmp_path))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"status": "incomplete"}, "its last result is incomplete"),
        ({"answer_sha256": "a2"}, "the answer changed"),
        ({"script": {"sha256": "s2"}}, "the judge changed"),
        ({"model": "lexical"}, "it was judged by lexical"),
        ({"scoring_version": 2, "eval_date": "2026-10-31"}, "scoring_version and eval_date changed"),
    ],
)
def test_result_is_valid_until_one_of_its_inputs_changes(changes: dict[str, Any], reason: str | None) -> None:
    assert rejudge_reason(result(**changes), BASIS) == reason


def test_summaries_are_written_only_for_tasks_with_a_result(tmp_path: Path) -> None:
    write_result(folder(tmp_path, 1), answer(1), result(1.0), finished_at=AT)
    write_result(folder(tmp_path, 2), answer(2, "Two words"), result(0.5), finished_at=AT)
    failed = AnswerOutcome(task_id="tower", answer_name="answer_1.md", error_code="JUDGE_BUG")

    write_summaries(tmp_path, "otter", [failed])

    assert json.loads((tmp_path / "otter/bridge/summary.json").read_text()) == [
        {"answer_name": "answer_1.md", "score": 1.0, "status": "success", "success": True},
        {"answer_name": "answer_2.md", "score": 0.5, "status": "success", "success": False},
    ]
    assert not (tmp_path / "otter/tower").exists()
    summary = json.loads((tmp_path / "otter/summary.json").read_text())
    assert (summary["avg_score"], summary["avg_answer_word_count"], summary["pass_at_2"]) == (0.75, 3.0, 1.0)
    assert summary["not_judged"]["without_result"] == 1
    assert summary["without_result"] == [{"task_id": "tower", "answer_name": "answer_1.md", "error_code": "JUDGE_BUG"}]
