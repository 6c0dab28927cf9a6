from __future__ import annotations

import io

import pytest

from app.console.safe_console import SafeConsole
from app.features.suites.cli_suite_run import StepProgress


@pytest.mark.parametrize(
    ("metric", "figures"),
    [
        (None, "ele 0.500  f1 0.750  step 0.500  1 not judged  1 reused"),
        ("mindact", "ele 0.500  f1 0.750  step 0.500  1 not judged  1 reused"),
        ("action", "ele 0.500  action 0.750  step 0.500  1 not judged  1 reused"),
    ],
)
def test_figures_so_far_are_means_over_scored_steps_named_by_the_metric(metric: str | None, figures: str):
    written = io.StringIO()
    with StepProgress(SafeConsole(file=written, force_terminal=False, width=200), metric=metric) as shown:
        for done, (element, second, step) in enumerate([(1, 1.0, 1), (0, 0.5, 0)], start=1):
            record = {"status": "scored", "element_acc": element, "action_f1": second, "step_acc": step}
            shown.on_step(record, done=done, total=4, reused=done == 1)
        shown.on_step({"status": "not_judged"}, done=3, total=4, reused=False)
        shown.on_step({"status": "skipped"}, done=4, total=4, reused=False)
    assert written.getvalue() == f"4/4 steps  {figures}\n"
