"""CSV tables of suites, with published figures next to measured ones."""

from __future__ import annotations

from typing import Any

from app.features.suites.page_figures import FIGURES_CSV, figure_rows, suite_run
from tests.unit.app.features.suites.test_page_figures import RUN, TILDE

PUBLISHED = {"system": "MindAct", "setting": "top 50", "element_acc": 43.6, "op_f1": None, "step_success": 41.0}
RESULT: dict[str, Any] = {**TILDE, "published": [{**PUBLISHED, "task_success": 4.0}], "usage": {"usd": 0.5}}


def test_figures_of_a_run_have_intervals_and_bounds():
    means = [dict(zip(FIGURES_CSV, row, strict=True)) for row in figure_rows(suite_run(RUN, RESULT))]
    assert [row["mean"] for row in means] == ["mean over steps", "mean over tasks", "MindAct top 50 (published)"]
    assert (means[0]["element"], means[0]["element_low_95"], means[0]["element_high_95"]) == (0.1, 0.0, 1.0)
    assert (means[1]["step"], means[1]["step_lowest"], means[1]["step_highest"]) == (None, 0.2, 0.6)
    assert (means[2]["element"], means[2]["operation"], means[2]["step"]) == (0.436, None, 0.41)
