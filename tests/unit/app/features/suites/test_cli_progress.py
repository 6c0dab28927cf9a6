from __future__ import annotations

import io
from typing import Any

import pytest

from app.console.safe_console import SafeConsole
from app.features.suites.cli_suite_run import StepProgress


def scored(element: int, f1: float, success: int) -> dict[str, Any]:
    return {"status": "scored", "element_acc": element, "action_f1": f1, "step_acc": success}


def progress(metric: str | None = None) -> tuple[StepProgress, io.StringIO]:
    written = io.StringIO()
    return StepProgress(SafeConsole(file=written, force_terminal=False, width=200), metric=metric), written


def test_figures_so_far_are_means_over_scored_steps():
    shown, written = progress()
    with shown:
        shown.on_step(scored(1, 1.0, 1), done=1, total=4, reused=True)
        shown.on_step(scored(0, 0.5, 0), done=2, total=4, reused=False)
        shown.on_step({"status": "not_judged"}, done=3, total=4, reused=False)
        shown.on_step({"status": "skipped"}, done=4, total=4, reused=False)
    assert written.getvalue() == "4/4 steps  ele 0.500  f1 0.750  step 0.500  1 not judged  1 reused\n"


def test_not_every_step_prints_a_line_without_a_terminal():
    shown, written = progress()
    with shown:
        for done in range(1, 100):
            shown.on_step(scored(1, 1.0, 1), done=done, total=100, reused=False)
    assert written.getvalue().count("\n") <= 1


@pytest.mark.parametrize(
    ("metric", "figures"),
    [
        (None, "ele 0.000  f1 0.000  step 0.000"),  # Multimodal-Mind2Web~
        ("mindact", "ele 0.000  f1 0.000  step 0.000"),
        ("action", "ele 0.000  action 0.000  step 0.000"),
    ],
)
def test_figures_before_the_first_step_are_zero_and_named_by_the_metric(metric: str | None, figures: str):
    assert progress(metric)[0].figures == figures
