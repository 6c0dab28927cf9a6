"""Runs of both suites in one format."""

from __future__ import annotations

from typing import Any

import pytest

from app.features.suites.comparison_page import verdict_of
from app.features.suites.page_figures import suite_run

RUN: dict[str, Any] = {
    "id": "job_1",
    "order": {"split": "test_task"},
    "means": {"element_acc": 0.5, "action_f1": 0.6, "step_acc": 0.4},
    "progress": {"not_judged": 0},
}
MEANS = {"element_accuracy": 0.1, "operation_f1": 0.2, "step_success": 0.3}
MIND2WEB = {"split": "test_task", "model": "m", "micro": MEANS, "macro": MEANS, "intervals_95": {"micro": {}}}
TILDE = {
    "splits": ["test_website"],
    "element_accuracy_micro": 0.1,
    "operation_token_f1_micro": 0.2,
    "step_success_micro": 0.3,
    "element_accuracy_macro": 0.4,
    "operation_token_f1_macro": 0.5,
    "step_success_macro": None,
    "intervals_95": {"micro": {"element": {"low": 0.0, "high": 1.0}}},
    "bounds": {"low": {"step_success_macro": 0.2}, "high": {"step_success_macro": 0.6}},
}


def test_both_suites_have_the_same_figures():
    one, other = suite_run(RUN, MIND2WEB), suite_run(RUN, TILDE)
    assert one.figures["micro"] == other.figures["micro"] == {"element": 0.1, "operation": 0.2, "step": 0.3}
    assert (one.split, other.split) == ("test_task", "test_website")
    assert other.interval("micro", "element") == {"low": 0.0, "high": 1.0}


@pytest.mark.parametrize(
    ("tasks", "difference", "p", "verdict"),
    [
        (5, 1.0, 0.06, "Too few tasks to tell"),
        (20, 0.2, 0.05, "No significant difference"),
        (20, 0.2, 0.01, "The candidate is better"),
        (20, -0.2, 0.01, "The candidate is worse"),
    ],
)
def test_verdict_of_a_comparison_is_that_of_its_test(tasks: int, difference: float, p: float | None, verdict: str):
    assert verdict_of({"tasks": tasks, "macro": {"step": {"difference": difference, "p": p}}}) == verdict
