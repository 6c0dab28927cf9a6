"""Paired comparison of sides: pairing, bounds, correction, verdict."""

from __future__ import annotations

from typing import Any

import pytest

from app.features.comparison.paired_comparison import ComparisonSide, comparison_json, direction
from judges.agent_figures import AnswerOutcome


def result(low: float, high: float | None = None) -> dict[str, Any]:
    high = low if high is None else high
    value = low if low == high else None
    status = "complete" if value is not None else "incomplete"
    return {"status": status, "score": {"value": value, "low": low, "high": high}, "final_score": low}


def side(name: str, **scores: Any) -> ComparisonSide:
    """Return a side with scores by task: a number, (low, high), a list for several answers, or None for no result."""
    outcomes = []
    for task, given in scores.items():
        for nth, each in enumerate(given if isinstance(given, list) else [given], start=1):
            found = None if each is None else result(*each) if isinstance(each, tuple) else result(each)
            outcomes.append(AnswerOutcome(task_id=task, answer_name=f"answer_{nth}.md", result=found))
    return ComparisonSide(name=name, outcomes=outcomes)


def compare_two(before: ComparisonSide, after: ComparisonSide) -> dict[str, Any]:
    [found] = comparison_json(before, [after])["comparisons"]
    return dict(found)


def test_tasks_are_paired_and_unpaired_ones_are_listed():
    found = compare_two(side("old", one=0.5, two=0.0, mine=1.0), side("new", one=0.5, two=1.0, yours=0.0))
    assert [(task["task_id"], task["difference"]["value"]) for task in found["tasks"]] == [("one", 0.0), ("two", 1.0)]
    assert found["score"]["difference"] == 0.5
    assert (found["only_a"], found["only_b"]) == (["mine"], ["yours"])


def test_answers_of_a_task_are_averaged_before_tasks():
    found = compare_two(side("old", a=[1.0, 0.0, 0.0, 0.0], b=0.0), side("new", a=1.0, b=0.0))
    assert found["score"]["difference"] == pytest.approx(0.375)
    assert found["success"]["a"]["value"] == pytest.approx(0.125)


def test_open_task_is_excluded_from_tests_and_included_in_bounds():
    found = compare_two(side("old", a=0.5, b=0.5, c=0.5), side("new", a=1.0, b=0.75, c=(0.0, 1.0)))
    score = found["score"]
    assert (score["tasks"], score["certain"]) == (3, 2)
    assert score["difference"] == pytest.approx(0.375)
    assert (score["low"], score["high"]) == (pytest.approx(0.25 / 3), pytest.approx(1.25 / 3))
    assert found["tasks"][2]["difference"] == {"value": None, "low": -0.5, "high": 0.5}
    assert score["whatever_is_open"]["low"] < 0 < score["whatever_is_open"]["high"]


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ([0.1, 0.2, 0.3, 0.1, 0.2, 0.3], "b_higher"),
        ([-0.1, 0.2, 0.3, 0.1, -0.2, 0.3], "not_told_apart"),
        ([0.1, 0.2, 0.3, 0.1, 0.2], "too_few_tasks"),
    ],
)
def test_verdict_is_that_of_the_sign_flip_test(gains: list[float], verdict: str):
    before = side("old", **{f"t{nth}": 0.5 for nth in range(len(gains))})
    after = side("new", **{f"t{nth}": 0.5 + gain for nth, gain in enumerate(gains)})
    found = compare_two(before, after)["score"]
    assert found["verdict"] == verdict
    assert found["sign_flip"]["exact"] is True


def test_many_comparisons_are_corrected_by_holm():
    """Six tasks that all differ one way have p = 2/64 < 0.05. Corrected for two comparisons, p is 4/64 > 0.05."""
    before = side("old", **{f"t{nth}": 0.0 for nth in range(6)})
    up, down = (side(name, **{f"t{nth}": 0.5 for nth in range(6)}) for name in ("up", "too"))
    alone, [first, second] = compare_two(before, up), comparison_json(before, [up, down])["comparisons"]
    assert alone["score"]["sign_flip"]["p_holm"] == alone["score"]["sign_flip"]["p"] == 2 / 64
    assert first["score"]["sign_flip"]["p_holm"] == second["score"]["sign_flip"]["p_holm"] == 4 / 64
    assert (alone["score"]["verdict"], first["score"]["verdict"]) == ("b_higher", "not_told_apart")


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ([(-0.1, -0.1)], "worse on the only task"),
        ([(-0.3, -0.1), (-0.2, -0.2)], "worse on both tasks"),
        ([(0.1, 0.1)] * 3, "better on all 3 tasks"),
        ([(0.1, 0.1), (-0.1, 0.2), (0.0, 0.0), (0.2, 0.2)], "better on 2, equal on 1, open on 1"),
        ([], "not comparable without shared tasks"),
    ],
)
def test_direction_counts_tasks(differences: list[tuple[float, float]], expected: str):
    assert direction([{"difference": {"low": low, "high": high}} for low, high in differences]) == expected
