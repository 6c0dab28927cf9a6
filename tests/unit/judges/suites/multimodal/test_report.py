"""Report: the example of the contract, calculated by hand, and the effect of not judged steps."""

from __future__ import annotations

from typing import Any

import pytest

from judges.suites.multimodal.scoring import report
from judges.suites.rules import Reading


def step(task: str, element: int, f1: float, *, status: str = "scored", website: str = "w") -> dict[str, Any]:
    known = status == "scored"
    return {
        "task_id": task,
        "website": website,
        "domain": "d",
        "status": status,
        "element_acc": element if known else None,
        "f1": dict.fromkeys(map(str, Reading), f1) if known else None,
    }


STEPS = [step("t1", 1, 1.0), step("t1", 1, 1.0), step("t2", 0, 1.0), step("t2", 1, 0.5), step("t4", 1, 1.0)]


def test_figures_are_means_over_steps_and_tasks_and_task_success():
    figures = report(STEPS, reading=Reading.SET, seed=0)
    assert figures["element_accuracy_micro"] == pytest.approx(4 / 5)
    assert figures["operation_token_f1_micro"] == pytest.approx(4.5 / 5)
    assert figures["step_success_micro"] == pytest.approx(3 / 5)
    assert figures["element_accuracy_macro"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert figures["step_success_macro"] == pytest.approx(2 / 3)
    assert figures["task_success"] == pytest.approx(2 / 3)
    assert figures["error_ratio"] == {"0": pytest.approx(2 / 3), "2": pytest.approx(1 / 3)}
    assert figures["bounds"]["low"] == figures["bounds"]["high"]


def test_not_judged_step_gives_bounds_instead_of_a_figure():
    figures = report([*STEPS, step("t1", 0, 0, status="not_judged")], reading=Reading.SET, seed=0)
    assert figures["step_success_micro"] is None
    assert figures["intervals_95"] is None
    assert figures["bounds"]["low"]["step_success_micro"] == pytest.approx(3 / 6)
    assert figures["bounds"]["high"]["step_success_micro"] == pytest.approx(4 / 6)
    assert figures["bounds"]["low"]["task_success"] == pytest.approx(1 / 3)
    assert figures["bounds"]["high"]["task_success"] == pytest.approx(2 / 3)
