"""Runs of both suites in one format."""

from __future__ import annotations

from typing import Any

from app.features.suites.page_figures import FIGURES_CSV, figure_rows, suite_run

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


PUBLISHED = {"system": "MindAct", "setting": "top 50", "element_acc": 43.6, "op_f1": None, "step_success": 41.0}
RESULT: dict[str, Any] = {**TILDE, "published": [{**PUBLISHED, "task_success": 4.0}], "usage": {"usd": 0.5}}


def test_figures_of_a_run_have_intervals_and_bounds():
    means = [dict(zip(FIGURES_CSV, row, strict=True)) for row in figure_rows(suite_run(RUN, RESULT))]
    assert [row["mean"] for row in means] == ["mean over steps", "mean over tasks", "MindAct top 50 (published)"]
    assert (means[0]["element"], means[0]["element_low_95"], means[0]["element_high_95"]) == (0.1, 0.0, 1.0)
    assert (means[1]["step"], means[1]["step_lowest"], means[1]["step_highest"]) == (None, 0.2, 0.6)
    assert (means[2]["element"], means[2]["operation"], means[2]["step"]) == (0.436, None, 0.41)
