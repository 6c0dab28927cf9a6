"""Dashboard page that compares two runs of a suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import httpx
from fastapi import APIRouter, Query, Response

from app.csv_tables import Cell
from app.dashboard.downloads import Format, csv_file
from app.dashboard.html_route import HtmlRoute
from app.dashboard.viewer import ViewerDep, query_of
from app.features.suites.page_figures import (
    MEANS,
    MEASURES,
    SuiteRun,
    by_split,
)
from app.features.suites.pages import NAMES, list_runs
from app.features.suites.service_suite import SuiteName
from assay_client.errors import ApiError

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

Side = Annotated[str, Query(pattern=r"^[A-Za-z0-9_-]{0,64}$")]
_MAX_RUNS = 50
_MIN_TASKS = 6
"""With fewer tasks, no sign-flip test can be significant."""
_SIGNIFICANT = 0.05
_DIFFERENCES_CSV = ("figure", "baseline", "candidate", "difference", "low_95", "high_95", "p")
_CHANGES_CSV = ("passed_by", "id", "task_id", "position_baseline", "position_candidate")
_SIDES: Mapping[str, str] = {"a": "baseline", "b": "candidate"}


class Table(StrEnum):
    """Tables of the page."""

    DIFFERENCES = "differences"
    CHANGES = "changes"


@router.get("/suites/{suite}/compare")
async def compare_runs(
    suite: SuiteName,
    viewer: ViewerDep,
    a: Side = "",
    b: Side = "",
    table: Table = Table.DIFFERENCES,
    format: Format = Format.HTML,
) -> Response:
    """Show the comparison of run ``b`` (candidate) with run ``a`` (baseline), or a form to select them."""
    finished = [run for run in await list_runs(viewer, suite, at_most=_MAX_RUNS) if run.result is not None]
    sides = {str(run.run["id"]): run for run in finished}
    compared: Mapping[str, Any] | None = None
    problem = "Select two different runs." if a and a == b else None
    if a and b and problem is None:
        try:
            compared = await viewer.api.get(f"/v1/suites/{suite}/compare", a=a, b=b)
        except ApiError as error:
            if error.status != httpx.codes.CONFLICT:
                raise
            problem = f"{error.detail.rstrip('.')}."
    rows = [] if compared is None else list(_differences(compared))
    changes = {} if compared is None else _changes(compared["changes"])
    if format is Format.CSV and compared is not None:
        name = f"{suite}-compare-{a}-{b}-{table}"
        if table is Table.CHANGES:
            cells = [_change_row(one) for every in changes.values() for one in every]
            return await csv_file(name, _CHANGES_CSV, cells)
        return await csv_file(name, _DIFFERENCES_CSV, (_difference_row(*row) for row in rows))
    query = query_of({"a": a, "b": b})
    return await viewer.page(
        "suite_compare.html", title=f"Compare runs of {NAMES[suite]}", here="home",
        json=None if compared is None else f"/v1/suites/{suite}/compare?{query}",
        csv=f"/suites/{suite}/compare?{query}&format=csv" if rows else None,
        suite=suite, names=NAMES, a=a, b=b, query=query, problem=problem, choices=by_split(finished), sides=sides,
        run_label=_run_label, compared=compared, verdict=verdict_of(compared),
        min_tasks=_MIN_TASKS, rows=rows, measures=MEASURES,
        lost=changes.get("a", ()), gained=changes.get("b", ()),
        differing={one["setting"] for one in compared["settings"]} if compared else set(),
    )  # fmt: skip


def _run_label(run: SuiteRun) -> str:
    label = run.run["order"].get("run")
    return f"{run.model}{f' · {label}' if label else ''} · {str(run.run['created_at'])[:16].replace('T', ' ')}"


def verdict_of(compared: Mapping[str, Any] | None) -> str:
    """Return the headline of a comparison, from the sign-flip test of step success over tasks."""
    step = compared and compared["macro"] and compared["macro"]["step"]
    if not step:
        return "Nothing to compare"
    if compared is not None and compared["tasks"] < _MIN_TASKS:
        return "Too few tasks to tell"
    if step["p"] is None or step["p"] >= _SIGNIFICANT:
        return "No significant difference"
    return "The candidate is better" if step["difference"] > 0 else "The candidate is worse"


def _differences(compared: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (name, figure) for both means and task success."""
    for mean, words in MEANS.items():
        for measure, figure in (compared[mean] or {}).items():
            yield f"{MEASURES[measure]}, {words}", figure
    if compared["task_success"] is not None:
        yield f"Task success, {compared['task_success']['tasks']} tasks", compared["task_success"]


def _changes(changes: Mapping[str, Any]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the steps with another result by the side that passes them."""
    return {
        side: [{**step, "passed_by": side} for step in changes[name]] for side, name in (("a", "lost"), ("b", "gained"))
    }


def _difference_row(name: str, figure: Mapping[str, Any]) -> list[Cell]:
    interval = figure["interval_95"] or {}
    return [
        name, figure["a"], figure["b"], figure["difference"], interval.get("low"), interval.get("high"), figure["p"],
    ]  # fmt: skip


def _change_row(step: Mapping[str, Any]) -> list[Cell]:
    return [_SIDES[step["passed_by"]], step["id"], step["task_id"], step["position_a"], step["position_b"]]
