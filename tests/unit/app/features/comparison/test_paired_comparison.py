"""Paired comparison of sides: pairing, bounds, correction, verdict."""

from __future__ import annotations

from typing import Any

import pytest

from app.agent_summary import AnswerOutcome
from app.features.comparison.paired_comparison import ComparisonSide, add_flips, comparison_json
from judges.analysis.flips import comparable_result, flips
from tests.fakes.judged import FAILED, leaf, result_of, rubric_of


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


def test_answer_without_a_result_is_open_and_not_zero():
    found = compare_two(side("old", a=0.5), side("new", a=None))
    assert found["tasks"][0]["b"] == {"value": None, "low": 0.0, "high": 1.0}
    assert found["score"]["verdict"] == "nothing_to_compare"
    assert found["b"]["not_judged"] == 1


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
    ("gains", "sides", "smallest", "message"),
    [
        ([0.5] * 5, 1, 2 / 32, "5 of 5 tasks differ, so the sign-flip test cannot give a p below 0.0625:"),
        ([0.5] * 3 + [0.0] * 9, 1, 2 / 8, "3 of 12 tasks differ, so the sign-flip test cannot give a p below 0.25:"),
        ([0.5] * 6, 2, 2 / 64, "cannot give a p below 0.0625, Holm-corrected:"),
    ],
)
def test_warning_states_the_smallest_possible_p(gains: list[float], sides: int, smallest: float, message: str):
    before = side("old", **{f"t{nth}": 0.5 for nth in range(len(gains))})
    after = side("new", **{f"t{nth}": 0.5 + gain for nth, gain in enumerate(gains)})
    score = comparison_json(before, [after] * sides)["comparisons"][0]["score"]
    assert score["sign_flip"]["smallest_p"] == smallest
    found = [warning for warning in score["warnings"] if "sign-flip" in warning]
    assert [message in warning for warning in found] == [True]


def test_comparison_lists_a_maximum_of_flips_and_counts_all():
    names = ("a", "b", "c")
    left = [comparable_result(result_of(rubric_of(*map(leaf, names), task_id=task))) for task in ("one", "two")]
    failed = [rubric_of(*(leaf(name, FAILED) for name in names), task_id=task) for task in ("one", "two")]
    right = [comparable_result(result_of(rubric)) for rubric in failed]
    comparison: dict[str, Any] = {"tasks": [{"task_id": task} for task in ("one", "three", "two")]}
    add_flips(comparison, flips(left, right), max_listed=4)
    assert [(task["flipped"], len(task["flips"])) for task in comparison["tasks"]] == [(3, 3), (0, 0), (3, 1)]
    assert (comparison["flipped"], comparison["flips_left_out"]) == (6, 2)
    assert comparison["tasks"][0]["flips"][0] == {
        "task_id": "one", "answer_name": "answer_1.md", "leaf": "a",
        "description": left[0].leaves["a"].description,
        "before": "passed", "after": "failed",
        "causes": [{"cause": "vote", "detail": "same claim, pages, judge and model"}],
        "result_before": left[0].result_id, "result_after": right[0].result_id,
    }  # fmt: skip
