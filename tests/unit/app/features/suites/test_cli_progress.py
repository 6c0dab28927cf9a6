from __future__ import annotations

import io
from typing import Any

from app.console.safe_console import SafeConsole
from app.features.suites.cli_suite_run import StepProgress


def scored(element: int, f1: float, success: int) -> dict[str, Any]:
    return {"status": "scored", "element_acc": element, "action_f1": f1, "step_acc": success}


def test_figures_so_far_are_means_over_scored_steps():
    written = io.StringIO()
    with StepProgress(SafeConsole(file=written, force_terminal=False, width=200), metric=None) as shown:
        shown.on_step(scored(1, 1.0, 1), done=1, total=4, reused=True)
        shown.on_step(scored(0, 0.5, 0), done=2, total=4, reused=False)
        shown.on_step({"status": "not_judged"}, done=3, total=4, reused=False)
        shown.on_step({"status": "skipped"}, done=4, total=4, reused=False)
    assert written.getvalue() == "4/4 steps  ele 0.500  f1 0.750  step 0.500  1 not judged  1 reused\n"
