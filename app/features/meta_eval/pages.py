"""Dashboard page of judge benches: a table of judges, and a plot of kappa against the price of a claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from markupsafe import Markup, escape

from app.dashboard.downloads import Format, csv_file
from app.dashboard.html_route import HtmlRoute
from app.dashboard.viewer import ViewerDep
from app.features.meta_eval.api import BENCH_ID
from judges.analysis.meta_eval.bench import (
    CSV_COLUMNS,
    FIGURES,
    bench_notes,
    csv_cells,
    judge_name,
)

_WIDTH, _HEIGHT = 360, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 348, 12, 210
_FREE_WIDTH: Final = 58
"""Width of the column of judges without a price, left of the logarithmic scale."""
_ROUNDING: Final = 1e-9
_MARKS: Final = {
    "asked": ("plot-live", "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z"),
    "recorded": ("plot-recorded", "m0 -5l5 5l-5 5l-5 -5z"),
}
"""Style and outline of the mark of a judge, by kind: circle, diamond."""
_LABEL_HEIGHT: Final = 11
_LABEL_WIDTH: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedJudge:
    """Judge with the price of a claim in US dollars, and kappa with its interval. ``number`` is its label.

    ``kind`` says where its verdicts come from: ``asked`` or ``recorded``.
    """

    number: int
    name: str
    usd: float
    kappa: float
    low: float | None
    high: float | None
    kind: str

    @property
    def words(self) -> str:
        interval = "" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.number}: {self.name}, kappa {self.kappa:.2f}{interval}, {_price(self.usd)}"


def cost_plot(judges: Sequence[PlottedJudge]) -> Markup:
    """Draw the judges by price (logarithmic, free judges at the left) and kappa. Empty without judges."""
    if not judges:
        return Markup("")
    x_of, ticks = _price_scale([judge.usd for judge in judges])
    lowest = min(0.0, *(math.floor(5 * (judge.kappa if judge.low is None else judge.low)) / 5 for judge in judges))

    def y_of(kappa: float) -> float:
        return _BOTTOM - (kappa - lowest) / (1 - lowest) * (_BOTTOM - _TOP)

    parts = [_grid(y_of, lowest), *ticks]
    taken: list[tuple[float, float]] = []
    for judge in sorted(judges, key=lambda one: (x_of(one.usd), -one.kappa)):
        x, y = x_of(judge.usd), y_of(judge.kappa)
        if judge.low is not None and judge.high is not None:
            parts.append(f'<path class="plot-interval" d="M{x:.1f} {y_of(judge.low):.1f}V{y_of(judge.high):.1f}"/>')
        style, outline = _MARKS[judge.kind]
        place = f"M{x:.1f} {y:.1f}{outline}"
        parts.append(f'<path class="{style}" d="{place}"><title>{escape(judge.words)}</title></path>')
        label_x, label_y = _free_place(taken, x + 8, y + 4)
        parts.append(f'<text class="plot-label" x="{label_x:.1f}" y="{label_y:.1f}">{judge.number}</text>')
    words = escape("Kappa against the price of a claim. " + "; ".join(judge.words for judge in judges))
    return Markup(  # noqa: S704 - generated numbers, and escaped names
        f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{words}">{"".join(parts)}</svg>'
    )


def _price_scale(prices: Sequence[float]) -> tuple[_Scale, list[str]]:
    """Return the scale of prices and its ticks: powers of ten, and one place for judges that are free."""
    paid = [price for price in prices if price > 0]
    has_free = len(paid) < len(prices)
    start = _LEFT + (_FREE_WIDTH if has_free else 0)
    # A mean of equal prices can differ from a power of ten in the last digit.
    least = math.floor(math.log10(min(paid)) + _ROUNDING) if paid else 0
    most = max(math.ceil(math.log10(max(paid)) - _ROUNDING), least + 1) if paid else 1
    scale = _Scale(start=start, least=least, most=most)
    ticks = [_tick(_LEFT + _FREE_WIDTH / 2, "free")] if has_free else []
    if paid:
        step = math.ceil((most - least) / 5)
        ticks += [_tick(scale(10.0**power), f"${10.0**power:g}") for power in range(least, most + 1, step)]
    title = '<text class="plot-text" x="{}" y="{}" text-anchor="end">USD per claim</text>'
    return scale, [*ticks, title.format(_RIGHT, _HEIGHT - 6)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Logarithmic scale of prices between two powers of ten."""

    start: float
    least: int
    most: int

    def __call__(self, usd: float) -> float:
        if usd <= 0:
            return _LEFT + _FREE_WIDTH / 2
        share = (math.log10(usd) - self.least) / (self.most - self.least)
        return self.start + 8 + share * (_RIGHT - self.start - 24)


def _tick(x: float, text: str) -> str:
    return (
        f'<path class="plot-grid" d="M{x:.1f} {_BOTTOM}v4"/>'
        f'<text class="plot-text" x="{x:.1f}" y="{_BOTTOM + 16}" text-anchor="middle">{text}</text>'
    )


def _grid(y_of: Callable[[float], float], lowest: float) -> str:
    lines = []
    for step in range(round(lowest * 5), 6):
        y = y_of(step / 5)
        lines.append(
            f'<path class="plot-grid" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>'
            f'<text class="plot-text" x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{step / 5:.1f}</text>'
        )
    middle = (_TOP + _BOTTOM) / 2
    title = f'<text class="plot-text" transform="translate(11 {middle}) rotate(-90)" text-anchor="middle">kappa</text>'
    return "".join([*lines, title])


def _free_place(taken: list[tuple[float, float]], x: float, y: float) -> tuple[float, float]:
    """Return a place for a label near ``(x, y)`` that no earlier label covers, and note it."""
    while any(abs(x - other_x) < _LABEL_WIDTH and abs(y - other_y) < _LABEL_HEIGHT for other_x, other_y in taken):
        y += _LABEL_HEIGHT
    taken.append((x, y))
    return x, y


def _price(usd: float) -> str:
    return "free" if usd == 0 else f"${usd:.2g} per claim"


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
        "benches.html", title="Judges", here="review", tab="benches", benches=listed, report=report, shown=shown,
        json="/v1/benches" if shown is None else f"/v1/benches/{shown}",
        csv=None if shown is None else f"/benches?id={shown}&format=csv",
        sets=[] if report is None else _sets(report), name_of=judge_name,
        notes=[] if report is None else bench_notes(report),
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
        sets.append(
            {
                "summary": one,
                "rows": rows,
                "plot": cost_plot(judges),
                "plotted": len(judges),
            }
        )
    return sets
