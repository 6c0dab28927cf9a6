"""Runs of both suites in one format."""

from __future__ import annotations

from typing import Any

import pytest

from app.features.suites.comparison_page import verdict_of
from app.features.suites.page_figures import breakdown, suite_run
from app.features.suites.pages import step_details

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


def test_unknown_figure_has_bounds():
    run = suite_run(RUN, TILDE)
    assert run.figures["macro"]["step"] is None
    assert run.bounds("macro", "step") == (0.2, 0.6)


@pytest.mark.parametrize(
    ("order", "result", "label"),
    [
        ({}, MIND2WEB | {"metric": "mindact"}, "Operation F1"),
        ({"protocol": "guide"}, None, "Action accuracy"),
        ({}, TILDE, "Operation F1"),
    ],
)
def test_operation_is_labelled_by_the_metric(order: dict[str, Any], result: dict[str, Any] | None, label: str):
    assert suite_run(RUN | {"order": order}, result).measures["operation"] == label


def test_details_show_the_answered_operation_and_the_text_of_the_correct_element():
    options = [["7", "<a> Search </a>"], ["8", "<a> Guests </a>"]]
    step = {
        "id": "t:0", "status": "scored", "action": 1, "prediction": ["8", "TYPE two"], "prompt": ["p"],
        "raw_output": [""],
        "rounds": [{"options": options, "picked": "8", "letter": "C"}],
        "gold": {"op": "TYPE", "value": "two", "elements": ["7", "9"]},
    }  # fmt: skip
    shown = step_details({"step": step, "page": None, "page_problem": None, "boxes": [], "screenshot": None})
    assert (shown.model_operation, shown.gold_operation) == ("TYPE two", "TYPE two")
    assert (shown.gold_elements, shown.has_page) == (["<a> Search </a>", "9"], False)


def test_figures_are_read_with_the_names_of_both_suites():
    names = {"element_accuracy_micro": 0.1, "operation_f1_micro": 0.2, "step_success_micro": 0.3}
    by_action = {"action_accuracy_micro": 0.4}
    first, second = breakdown({"websites": {"0": names, "1": by_action}}, "websites")
    assert first.figures["micro"] == {"element": 0.1, "operation": 0.2, "step": 0.3}
    assert (second.name, second.figures["micro"]["operation"], second.steps) == ("1", 0.4, None)


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
