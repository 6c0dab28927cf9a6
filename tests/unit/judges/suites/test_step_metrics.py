from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.suites.step_metrics import StepScore, bounds, score, task_bootstrap_intervals, token_f1


def step(task: str, element: float, operation: float, *, website: str = "w", judged: bool = True) -> StepScore:
    return StepScore(
        task_id=task,
        website=website,
        domain="d",
        element=element,
        operation=operation,
        success=element == operation == 1,
        judged=judged,
    )


@pytest.mark.parametrize(
    ("predicted", "gold", "as_sets", "as_multisets"),
    [
        ("", "", 1.0, 1.0),
        ("", "CLICK", 0.0, 0.0),
        ("CLICK", "", 0.0, 0.0),
        ("CLICK None", "CLICK", 2 / 3, 2 / 3),
        ("TYPE boston", "SELECT boston", 0.5, 0.5),
        ("TYPE new york new york", "TYPE new york", 1.0, 0.75),
        ("boston TYPE", "TYPE boston", 1.0, 1.0),
        ("TYPE Boston", "TYPE boston", 0.5, 0.5),
    ],
)
def test_token_f1_of_sets_and_multisets(predicted: str, gold: str, as_sets: float, as_multisets: float):
    assert token_f1(predicted.split(), gold.split()) == pytest.approx(as_sets)
    assert token_f1(predicted.split(), gold.split(), multiset=True) == pytest.approx(as_multisets)


tokens = st.lists(st.sampled_from("abcd"), max_size=8)


@settings(max_examples=30)
@given(tokens, tokens)
def test_token_f1_is_symmetric(one: list[str], other: list[str]):
    assert token_f1(one, other) == token_f1(other, one)
    assert 0 <= token_f1(one, other, multiset=True) <= token_f1(one, other) or set(one) != set(other)


def test_micro_averages_steps_and_macro_averages_tasks():
    found = score([step("A", 1, 1), step("A", 1, 1), step("A", 1, 1), step("B", 0, 0.5)])
    assert (found.micro.element, found.micro.operation, found.micro.step) == (0.75, 0.875, 0.75)
    assert (found.macro.element, found.macro.operation, found.macro.step) == (0.5, 0.75, 0.5)
    assert found.task_success == 0.5


def test_more_than_three_errors_are_grouped_and_empty_groups_omitted():
    steps = [step(f"T{wrong}", 0, 1) for wrong in (1, 3, 4, 5) for _ in range(wrong)] + [step("T0", 1, 1)]
    assert score(steps).error_ratio == {"0": 0.2, "1": 0.2, "3": 0.2, ">3": 0.4}
    assert list(score(steps).error_ratio) == ["0", "1", "3", ">3"]


def test_websites_have_their_own_means():
    found = score([step("A", 1, 1, website="x"), step("B", 0, 1, website="y"), step("B", 1, 1, website="y")])
    assert [(name, group.micro.element, group.tasks) for name, group in found.websites.items()] == [
        ("x", 1.0, 1),
        ("y", 0.5, 1),
    ]


def test_not_judged_step_gives_bounds_instead_of_zero():
    found = bounds([step("A", 1, 1), step("A", 0, 0, judged=False)])
    assert found.certain is None
    assert (found.low.micro.step, found.high.micro.step, found.not_judged) == (0.5, 1.0, 1)
    assert (found.low.task_success, found.high.task_success) == (0.0, 1.0)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from([0.0, 1.0]), st.booleans()), max_size=12))
def test_score_with_any_outcome_of_open_steps_is_within_the_bounds(given_steps):
    steps = [step(task, value, value, judged=judged) for task, value, judged in given_steps]
    found, whole = bounds(steps), score([replace(each, judged=True) for each in steps])
    assert found.low.micro.step <= whole.micro.step <= found.high.micro.step
    assert found.low.macro.element <= whole.macro.element <= found.high.macro.element


def test_no_steps_score_zero_without_intervals():
    assert score([]).micro.element == 0.0
    assert task_bootstrap_intervals([]) is None


def test_intervals_resample_tasks_and_depend_on_the_seed():
    steps = [step(f"T{n}", n % 2, (n % 2) / (1 + n)) for n in range(40) for _ in range(3)]
    found = task_bootstrap_intervals(steps, seed=1, resamples=400)
    assert (
        found
        == task_bootstrap_intervals(steps, seed=1, resamples=400)
        != task_bootstrap_intervals(steps, seed=2, resamples=400)
    )
    assert found is not None
    # Forty tasks, not 120 steps: about 1.96 * 0.5 / sqrt(40) on each side.
    assert found["micro"]["element"]["low"] == pytest.approx(0.5 - 0.155, abs=0.04)
    assert found["macro"]["element"]["high"] == pytest.approx(0.5 + 0.155, abs=0.04)
