"""Paired comparison of two suite runs, with figures computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from judges.suites.step_metrics import compare_runs


def record(id: str, step: int | None, *, element: float = 1.0, operation: float = 1.0, **more: Any) -> dict[str, Any]:
    status = "not_judged" if step is None else "scored"
    figures = {"element_acc": element, "action_f1": operation, "step_acc": step} if step is not None else {}
    return {"id": id, "task_id": id.split("_")[0], "status": status, "element_acc": None, "action_f1": None,
            "step_acc": None, **figures, **more}  # fmt: skip


def run(steps: str, **more: Any) -> list[dict[str, Any]]:
    """Return records from a text such as ``T1:10 T2:1``; ``-`` is a step that was not judged."""
    return [
        record(f"{task}_{place}", None if flag == "-" else int(flag), **more)
        for task, flags in (part.split(":") for part in steps.split())
        for place, flag in enumerate(flags)
    ]


def test_steps_and_tasks_are_paired():
    compared = compare_runs(run("T1:100 T2:1 T3:00"), run("T1:111 T2:0 T3:01"))
    assert (compared["steps"], compared["tasks"]) == (6, 3)
    step = compared["micro"]["step"]
    assert (step["a"], step["b"], step["difference"]) == pytest.approx((2 / 6, 4 / 6, 2 / 6))
    macro = compared["macro"]["step"]
    assert (macro["a"], macro["b"]) == pytest.approx(((1 / 3 + 1 + 0) / 3, (1 + 0 + 1 / 2) / 3))
    assert macro["difference"] == pytest.approx((2 / 3 - 1 + 1 / 2) / 3)
    assert compared["micro"]["element"]["difference"] == 0.0
    assert compared["task_success"]["tasks"] == 3
    assert (compared["task_success"]["a"], compared["task_success"]["b"]) == pytest.approx((1 / 3, 1 / 3))
    changes = compared["changes"]
    assert {name: changes[name] for name in ("both", "only_a", "only_b", "neither")} == {
        "both": 1, "only_a": 1, "only_b": 3, "neither": 1,
    }  # fmt: skip
    assert changes["lost"] == [{"id": "T2_0", "task_id": "T2", "position_a": None, "position_b": None}]
    assert [step["id"] for step in changes["gained"]] == ["T1_1", "T1_2", "T3_1"]


def test_steps_that_were_not_judged_are_left_out_and_their_tasks_have_no_success():
    compared = compare_runs(run("T1:11 T2:1- T3:1"), run("T1:11 T2:11 T4:1"))
    assert (compared["steps"], compared["not_scored"], compared["only_a"], compared["only_b"]) == (3, 1, 1, 1)
    assert (compared["task_success"]["tasks"], compared["task_success"]["difference"]) == (1, 0.0)
    assert compared["micro"]["step"]["a"] == 1.0
