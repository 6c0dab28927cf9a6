"""Means over the tasks that all runs have."""

from __future__ import annotations

from datetime import UTC, datetime

from app.api.summaries import mean_scores
from app.storage.results import TaskScore
from rubrics.scoring import bounded_score


def task_score(agent: str, task_id: str, low: float, high: float | None = None) -> TaskScore:
    score = bounded_score(low, low if high is None else high)
    success = bounded_score(float(score.low == 1), float(score.high == 1))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return TaskScore(
        task_id=task_id, agent=agent, run=None, score=score, success=success, answers=1, incomplete=0, judge="lexical",
        result_id="res_1", last_judged_at=at,
    )  # fmt: skip


def test_means_are_over_the_shared_tasks_with_bounds_and_interval():
    shared = [task_score("heron", "a", 1.0), task_score("heron", "b", 0.5, 0.75), task_score("otter", "a", 0.2)]
    heron, otter = mean_scores([*shared, task_score("otter", "b", 0.4), task_score("otter", "c", 1.0)])
    assert heron.score is not None and otter.score is not None and heron.success is not None
    assert (heron.score.value, heron.score.low, heron.score.high, heron.tasks) == (None, 0.75, 0.875, 2)
    assert (heron.success.value, round(otter.score.low, 9), otter.tasks) == (0.5, 0.3, 2)
    assert heron.interval is not None
    assert heron.interval.low < 0.75 < 0.875 < heron.interval.high


def test_without_a_shared_task_there_is_no_mean():
    means = mean_scores([task_score("heron", "a", 1.0), task_score("otter", "b", 0.4)])
    assert [(one.tasks, one.score, one.interval, one.success) for one in means] == [(0, None, None, None)] * 2
