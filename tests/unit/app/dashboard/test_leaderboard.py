"""Rows of the leaderboard from summaries of the API."""

from __future__ import annotations

from typing import Any

import pytest

from app.agent_summary import AnswerOutcome, full_summary
from app.dashboard.leaderboard import CSV_HEADER, agent_figures, csv_row, mixed_judges_warning, trend
from tests.fakes.judged import FAILED, NOT_JUDGED, leaf, result_of, rubric_of


def summary(**scores: list[bool]):
    """Return a summary of tasks by name, each with one answer whose leaves pass or fail."""
    outcomes = [
        AnswerOutcome(
            task_id=task, answer_name="answer_1.md", result=result_of(rubric_of(*leaves(passed), task_id=task))
        )
        for task, passed in scores.items()
    ]
    return full_summary("walker", outcomes, resampled=False)


def leaves(passed: list[bool]):
    return [leaf(f"n{nth}") if one else leaf(f"n{nth}", FAILED) for nth, one in enumerate(passed)]


def test_row_has_averages_with_intervals_and_warnings():
    row = agent_figures(summary(one=[True, True], two=[True, False], three=[False, False]), [])
    assert (row.partial, row.success, row.pass_at_k, row.k) == (0.5, 0.3333, 0.3333, 1)
    assert row.partial_interval is not None and row.partial_interval["low"] < 0.1
    assert row.success_interval is not None and row.success_interval["method"] == "Gaffke over 3 tasks"
    assert "3 tasks, fewer than 5" in row.warnings[0]
    assert row.pass_interval == row.success_interval  # one answer a task
    assert len(csv_row(row)) == len(CSV_HEADER)


def test_row_has_the_share_of_answers_not_judged():
    document = full_summary(
        "walker",
        [
            AnswerOutcome(task_id="a", answer_name="1.md", result=result_of(rubric_of(leaf("x", NOT_JUDGED)))),
            AnswerOutcome(task_id="b", answer_name="1.md", result=None, error_code="DEADLINE"),
            AnswerOutcome(task_id="c", answer_name="1.md", result=result_of(rubric_of(leaf("x")))),
        ],
    )
    row = agent_figures(document, [])
    assert row.not_judged_share == pytest.approx(2 / 3)
    assert (row.without_result, row.leaves_not_judged) == (1, 1)


def test_agent_without_any_result_has_a_row():
    document = full_summary("walker", [AnswerOutcome(task_id="b", answer_name="1.md", error_code="DEADLINE")])
    row = agent_figures(document, [])
    assert (row.partial, row.partial_interval, row.not_judged_share) == (None, None, 1.0)


def test_pass_at_k_has_no_interval_if_some_tasks_have_fewer_answers():
    """The public figure then covers other tasks than the interval would."""
    outcomes = [
        AnswerOutcome(task_id=task, answer_name=f"{run}.md", result=result_of(rubric_of(leaf("x"))))
        for task, run in (("a", 1), ("a", 2), ("b", 1))
    ]
    assert agent_figures(full_summary("walker", outcomes, resampled=False), []).pass_interval is None
    assert agent_figures(full_summary("walker", outcomes[:2], resampled=False), []).pass_interval is not None


def judged_by(agent: str, *models: str):
    """Return the row of an agent with one answer per model."""
    outcomes = [
        AnswerOutcome(
            task_id=model, answer_name="1.md", result=result_of(rubric_of(leaf("x"), task_id=model)) | {"model": model}
        )
        for model in models
    ]
    return agent_figures(full_summary(agent, outcomes, resampled=False), [])


def test_agents_of_different_judges_have_a_warning():
    old, new, both = judged_by("a", "old"), judged_by("b", "new"), judged_by("c", "old", "new")
    assert (old.judges, set(both.judges)) == (("old",), {"old", "new"})
    for rows in ([old, new], [both]):
        warning = mixed_judges_warning(rows)
        assert warning is not None and "different judges (new, old)" in warning
    assert mixed_judges_warning([old, judged_by("d", "old")]) is None
    assert mixed_judges_warning([]) is None
    assert csv_row(old)[CSV_HEADER.index("judges")] == "old"


def test_trend_is_by_run_or_by_day():
    history: list[dict[str, Any]] = [
        {"run": "tue", "created_at": "2026-01-03T08:00:00+00:00", "final_score": 1.0},
        {"run": "mon", "created_at": "2026-01-02T08:00:00+00:00", "final_score": 0.5},
        {"run": "mon", "created_at": "2026-01-02T07:00:00+00:00", "final_score": 0.0},
        {"run": None, "created_at": "2026-01-01T07:00:00+00:00", "final_score": 0.2},
    ]
    assert [(point.label, point.value) for point in trend(history)] == [
        ("2026-01-01", 0.2),
        ("mon", 0.25),
        ("tue", 1.0),
    ]
