"""CSV tables of suites, with published figures next to measured ones."""

from __future__ import annotations

from typing import Any

from app.features.suites.page_figures import FIGURES_CSV, RUNS_CSV, by_split, figure_rows, run_rows, suite_run
from tests.unit.app.features.suites.test_page_figures import RUN, TILDE

PUBLISHED = {"system": "MindAct", "setting": "top 50", "element_acc": 43.6, "op_f1": None, "step_success": 41.0}
RESULT: dict[str, Any] = {**TILDE, "published": [{**PUBLISHED, "task_success": 4.0}], "usage": {"usd": 0.5}}


def test_figures_of_a_run_have_intervals_and_bounds():
    means = [dict(zip(FIGURES_CSV, row, strict=True)) for row in figure_rows(suite_run(RUN, RESULT))]
    assert [row["mean"] for row in means] == ["mean over steps", "mean over tasks", "MindAct top 50 (published)"]
    assert (means[0]["element"], means[0]["element_low_95"], means[0]["element_high_95"]) == (0.1, 0.0, 1.0)
    assert (means[1]["step"], means[1]["step_lowest"], means[1]["step_highest"]) == (None, 0.2, 0.6)
    assert (means[2]["element"], means[2]["operation"], means[2]["step"]) == (0.436, None, 0.41)


def test_runs_are_listed_by_suite_and_split_with_published_figures():
    run = {**RUN, "suite": "mind2web", "status": "succeeded", "created_at": "2026-01-01T00:00:00Z"}
    run["progress"] = {"not_judged": 1, "steps_done": 5, "steps_total": 6}
    rows = list(run_rows({"mind2web": by_split([suite_run(run, RESULT)])}))
    measured, published = (dict(zip(RUNS_CSV, row, strict=True)) for row in rows)
    assert (measured["id"], measured["element_macro"], measured["step_macro_highest"], measured["steps_total"]) == (
        "job_1",
        0.4,
        0.6,
        6,
    )
    assert (published["model"], published["status"], published["element_macro"]) == (
        "MindAct top 50",
        "published",
        0.436,
    )
    assert (published["element_micro"], published["task_success"]) == (None, 0.04)
