"""Rows of the matrix of agents and tasks from scores of the API."""

from __future__ import annotations

from typing import Any

from app.dashboard.home import matrix_rows, mixed_judges_warning


def score(task: str, low: float, high: float | None = None, **changes: Any) -> dict[str, Any]:
    high = low if high is None else high
    bounds = {"value": low if low == high else None, "low": low, "high": high}
    passed = {"value": float(low == 1.0), "low": float(low == 1.0), "high": float(high == 1.0)}
    item = {
        "task_id": task,
        "agent": "walker",
        "run": None,
        "score": bounds,
        "success": passed,
        "answers": 1,
        "incomplete": int(low != high),
        "judge": "old",
        "result_id": f"res_{task}",
        "last_judged_at": "2026-01-01T07:00:00+00:00",
    }
    return item | changes


def mean(value: float, **changes: Any) -> dict[str, Any]:
    bounds = {"value": value, "low": value, "high": value}
    item = {"agent": "walker", "run": None, "judge": "old", "tasks": 1, "score": bounds, "interval": None}
    return {**item, "success": bounds, **changes}


def test_rows_have_the_shown_tasks_and_their_mean():
    scores = [score("a", 1.0, agent="part"), score("a", 0.5), score("b", 0.5, 0.75), score("c", 0.0)]
    rows = matrix_rows(scores, [mean(0.5), mean(1.0, agent="part")], ["a", "b"])
    assert [(row.agent, (row.score or {})["value"], row.mean_tasks, row.tasks) for row in rows] == [
        ("part", 1.0, 1, 1),
        ("walker", 0.5, 1, 2),
    ]
    assert (rows[1].answers, rows[1].incomplete, set(rows[1].cells)) == (2, 1, {"a", "b"})


def test_rows_of_different_judges_have_a_warning():
    old, new = score("a", 1.0), score("a", 1.0, agent="heron", judge="new")
    warning = mixed_judges_warning(matrix_rows([old, new], [], ["a"]))
    assert warning is not None and "different judges (new, old)" in warning
    assert mixed_judges_warning(matrix_rows([old], [], ["a"])) is None
    assert mixed_judges_warning([]) is None
