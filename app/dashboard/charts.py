"""Small charts as SVG without scripts or inline styles, each with a text alternative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from app.dashboard.wording import decimal, points

_WIDTH, _HEIGHT = 120, 14
_BAR_FRAME = f'preserveAspectRatio="xMinYMid" viewBox="-2 0 {_WIDTH + 4} {_HEIGHT}"'
_TREND_WIDTH, _TREND_HEIGHT, _EDGE = 132, 34, 4


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Average score (0 to 1) of one run or day."""

    label: str
    value: float


def interval_bar(score: Mapping[str, Any], interval: Mapping[str, Any] | None = None, *, label: str = "") -> Markup:
    """Draw a score on a scale from 0 to 1: a mark, and behind it the 95 % ``interval`` if there is one.

    An open score without an interval is drawn as the range of its bounds.
    """
    around = interval or score
    words = escape(
        label or f"{'95 % interval ' if interval else ''}{points(around['low'])} to {points(around['high'])}"
    )
    mark = ""
    if interval or score["value"] is not None:
        left, width = score["low"] * _WIDTH - 1.5, (score["high"] - score["low"]) * _WIDTH + 3
        mark = f'<rect class="bar-mark" x="{left:.1f}" y="0" width="{width:.1f}" height="14" rx="1"/>'
    left, right = around["low"] * _WIDTH, around["high"] * _WIDTH
    return Markup(  # noqa: S704 - generated numbers, and an escaped label
        f'<svg class="bar" {_BAR_FRAME} role="img" aria-label="{words}">'
        f'<rect class="bar-track" x="0" y="5" width="{_WIDTH}" height="4" rx="2"/>'
        f'<rect class="bar-range" x="{left:.1f}" y="3" width="{max(right - left, 1):.1f}" height="8" rx="2"/>'
        f"{mark}</svg>"
    )


def share_bar(parts: Sequence[tuple[str, str, int]]) -> Markup:
    """Draw the shares of a whole as one bar. ``parts``: name, look (``passed``, ``failed`` ...) and number of each."""
    total = sum(number for _, _, number in parts)
    if not total:
        return Markup("")
    shapes, at = "", 0.0
    for name, look, number in parts:
        width = 600 * number / total
        shapes += (
            f'<rect class="share-{escape(look)}" x="{at:.1f}" y="0" width="{max(width - 1, 0.5):.1f}" height="10">'
            f"<title>{escape(name)}: {number}</title></rect>"
        )
        at += width
    words = escape(", ".join(f"{name}: {number}" for name, _, number in parts))
    return Markup(  # noqa: S704 - generated numbers, and escaped names
        f'<svg class="shares" viewBox="0 0 600 10" preserveAspectRatio="none" role="img" aria-label="{words}">'
        f"{shapes}</svg>"
    )


def shade(cell: Mapping[str, Any] | None) -> str:
    """Return the class of a cell of the matrix by its score, in five steps; "" without a certain score."""
    value = None if cell is None else cell["score"]["value"]
    return "" if value is None else f" shade-{min(int(value * 5), 4)}"


def trend_line(trend: Sequence[TrendPoint]) -> Markup:
    """Draw averages over time as a line; a single one as a dot."""
    if not trend:
        return Markup("")
    width, height = _TREND_WIDTH - 2 * _EDGE, _TREND_HEIGHT - 2 * _EDGE
    step = width / max(len(trend) - 1, 1)
    places = [(_EDGE + nth * step, _EDGE + (1 - point.value) * height) for nth, point in enumerate(trend)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle class="trend-dot" cx="{x:.1f}" cy="{y:.1f}" r="2"><title>{_point_label(point)}</title></circle>'
        for (x, y), point in zip(places, trend, strict=True)
    )
    words = Markup("Trend: ") + Markup(", ").join(_point_label(point) for point in trend)
    return Markup(  # noqa: S704 - generated numbers, and escaped labels
        f'<svg class="trend" viewBox="0 0 {_TREND_WIDTH} {_TREND_HEIGHT}" role="img" aria-label="{words}">'
        f'<path class="trend-base" d="M0 {_TREND_HEIGHT - _EDGE}H{_TREND_WIDTH}"/>'
        f'<polyline class="trend-line" points="{line}"/>{dots}</svg>'
    )


def _point_label(point: TrendPoint) -> Markup:
    return escape(f"{point.label}: {points(point.value)}")


def change_bar(low: float, high: float, value: float | None) -> Markup:
    """Draw a difference of two scores (-1 to 1) around a center line: a dot, or the range of an open one."""
    low, high = max(low, -1.0), min(high, 1.0)
    kind = "worse" if high < 0 else "better" if low > 0 else "same"
    middle, left, right = _WIDTH / 2, (1 + low) * _WIDTH / 2, (1 + high) * _WIDTH / 2
    if value is None:
        words = f"{decimal(low, sign='+')} to {decimal(high, sign='+')}"
        shape = f'<rect class="bar-{kind}" x="{left:.1f}" y="4" width="{max(right - left, 1):.1f}" height="6" rx="3"/>'
    else:
        words = decimal(value, sign="+")
        shape = f'<circle class="bar-{kind}" cx="{left:.1f}" cy="7" r="4"/>'
    return Markup(  # noqa: S704 - generated numbers
        f'<svg class="bar" {_BAR_FRAME} role="img" aria-label="{words}">'
        f'<rect class="bar-track" x="0" y="6" width="{_WIDTH}" height="2" rx="1"/>'
        f'<rect class="bar-mark" x="{middle - 0.75}" y="0" width="1.5" height="14"/>{shape}</svg>'
    )
