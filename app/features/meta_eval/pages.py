"""Dashboard page of judge benches: a table of judges, and a plot of kappa against the price of a claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from app.dashboard.downloads import Format, csv_file
from app.dashboard.html_route import HtmlRoute
from app.dashboard.viewer import ViewerDep
from app.features.meta_eval.api import BENCH_ID
from app.features.meta_eval.plot import PlottedJudge, cost_plot
from judges.analysis.meta_eval.bench import (
    CSV_COLUMNS,
    SUPPORT_COLUMNS,
    bench_notes,
    csv_cells,
    judge_name,
    jury_rows,
    support_cells,
    support_rows,
)
from judges.analysis.meta_eval.report import FIGURES

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_MAX_LISTED = 50
BenchQuery = Annotated[str | None, Query(pattern=BENCH_ID)]


@router.get("/benches")
async def benches(viewer: ViewerDep, id: BenchQuery = None, format: Format = Format.HTML) -> Response:
    """Show a judge bench (default: the newest) and list the others."""
    listed = (await viewer.api.get("/v1/benches", limit=_MAX_LISTED))["items"]
    shown = id or (listed[0]["id"] if listed else None)
    report = None if shown is None else await viewer.api.get(f"/v1/benches/{shown}")
    if format is Format.CSV and report is not None:
        return await csv_file(f"bench-{shown}", CSV_COLUMNS, map(csv_cells, report["rows"]))
    return await viewer.page(
        "benches.html", title="Judges", here="benches", benches=listed, report=report, shown=shown,
        json="/v1/benches" if shown is None else f"/v1/benches/{shown}",
        csv=None if shown is None else f"/benches?id={shown}&format=csv",
        sets=[] if report is None else _sets(report), name_of=judge_name,
        notes=[] if report is None else bench_notes(report),
        support_columns=SUPPORT_COLUMNS[1:],
        figures=tuple(zip(FIGURES, ("Agreement", "Kappa", "AC1", "TPR", "TNR"), strict=True)),
    )  # fmt: skip


def _sets(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each label set with its numbered rows, and the plot of the judges that have a price and a kappa."""
    sets = []
    for one in report["sets"]:
        rows = [(n, row) for n, row in enumerate(report["rows"], start=1) if row["set"] == one["name"]]
        judges = [
            PlottedJudge(
                number=n,
                name=judge_name(row),
                usd=row["per_claim"]["usd"],
                kappa=row["kappa"]["value"],
                low=row["kappa"]["low"],
                high=row["kappa"]["high"],
                kind=row["verdicts"],
            )
            for n, row in rows
            if row["per_claim"]["usd"] is not None and row["kappa"]["value"] is not None
        ]
        juries = [row for row in jury_rows(report) if row["set"] == one["name"]]
        supports = [support_cells(row)[1:] for row in support_rows(report) if row["set"] == one["name"]]
        sets.append(
            {
                "summary": one,
                "rows": rows,
                "juries": juries,
                "supports": [(name, cells) for name, *cells in supports],
                "plot": cost_plot(judges),
                "plotted": len(judges),
            }
        )
    return sets
