"""Plain tables of commands, and the format of figures in their cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

_UNWRAPPED = ("job", "result", "score", "status")
"""Columns that are never wrapped, because users copy ids from them."""


def plain_table(*headings: str) -> Table:
    """Return a table with these columns. Cells are markup, so escape text that may contain brackets."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in _UNWRAPPED)
    return table


def number_text(value: Any) -> str:
    return "-" if value is None else f"{value:g}"


def bounds_text(figure: Mapping[str, Any] | None, *, sign: str = "") -> str:
    """Format a figure: ``0.8333``, or ``0.5 to 0.8333`` while answers that were not judged could change it."""
    if figure is None or figure["low"] is None:
        return "-"
    low, high = (f"{round(figure[end], 6) + 0.0:{sign}.4g}" for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def interval_text(interval: Mapping[str, Any] | None, *, sign: str = "") -> str:
    """Format an interval."""
    return "-" if interval is None else f"{interval['low']:{sign}.4f} to {interval['high']:{sign}.4f}"
