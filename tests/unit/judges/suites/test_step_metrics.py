from __future__ import annotations

import pytest

from judges.suites.step_metrics import StepScore, bounds, intervals_95, score, token_f1


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
        ("", "CLICK", 0.0, 0.0),
        ("CLICK None", "CLICK", 2 / 3, 2 / 3),
        ("TYPE new york new york", "TYPE new york", 1.0, 0.75),
        ("TYPE Boston", "TYPE boston", 0.5, 0.5),
    ],
)
def test_token_f1_of_sets_and_multisets(predicted: str, gold: str, as_sets: float, as_multisets: float):
    assert token_f1(predicted.split(), gold.split()) == pytest.approx(as_sets)
    assert token_f1(predicted.split(), gold.split(), multiset=True) == pytest.approx(as_multisets)


def test_intervals_of_a_seed_do_not_change():
    steps = [step(f"T{n}", float(n * k % 3 == 1), 1.0) for n in range(1, 14) for k in range(1, n + 2)]
    found = intervals_95(steps, seed=1)
    assert found["micro"]["step"] == pytest.approx({"low": 0.13760942643, "high": 1 / 3})
    assert found["macro"]["step"] == pytest.approx({"low": 0.15567765568, "high": 0.34721861472})


def test_micro_averages_steps_and_macro_averages_tasks():
    found = score([step("A", 1, 1), step("A", 1, 1), step("A", 1, 1), step("B", 0, 0.5)])
    assert (found.micro.element, found.micro.operation, found.micro.step) == (0.75, 0.875, 0.75)
    assert (found.macro.element, found.macro.operation, found.macro.step) == (0.5, 0.75, 0.5)
    assert found.task_success == 0.5


def test_not_judged_step_gives_bounds_instead_of_zero():
    found = bounds([step("A", 1, 1), step("A", 0, 0, judged=False)])
    assert found.certain is None
    assert (found.low.micro.step, found.high.micro.step, found.not_judged) == (0.5, 1.0, 1)
    assert (found.low.task_success, found.high.task_success) == (0.0, 1.0)
