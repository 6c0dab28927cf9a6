"""Tables of commands that fit the terminal without breaking words, and the format of figures in their cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from app.number_format import formatted

_WHOLE = ("job", "result", "id")
"""Columns that are neither wrapped nor shortened, because users copy ids from them."""
_BREAKS = re.compile(r"\s+(?=\S)|(?<=[_\-/.:@,])(?=[A-Za-z])")
"""Places where a cell can be wrapped: spaces, and behind the separators of names."""


class PlainTable:
    """Table without vertical lines, as wide as the terminal at most.

    Cells are wrapped between words and behind the separators of names (``my_long-agent/name``). A word that is wider
    than its column is cut, with an ellipsis.
    """

    def __init__(self, headings: Sequence[str], *, right: Iterable[str] = (), title: str | None = None) -> None:
        self._headings = headings
        self._right = frozenset(right)
        self._title = title
        self._rows: list[list[Text]] = []
        self._sections: set[int] = set()

    def add_row(self, *cells: str | Text) -> None:
        """Add a row. Cells of type ``str`` are markup, so escape text that may contain brackets."""
        self._rows.append([Text.from_markup(cell) if isinstance(cell, str) else cell for cell in cells])

    def add_section(self) -> None:
        """Draw a line below the last row."""
        self._sections.add(len(self._rows) - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths, gap = self._widths(options.max_width)
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))
        table.title, table.title_justify = self._title, "left"
        for heading, width in zip(self._headings, widths, strict=True):
            is_right = heading in self._right
            table.add_column(heading, width=width, justify="right" if is_right else "left", overflow="ellipsis")
        for number, row in enumerate(self._rows):
            cells = (_wrapped(cell, width) for cell, width in zip(row, widths, strict=True))
            table.add_row(*cells, end_section=number in self._sections)
        yield table
        yield ""

    def _widths(self, available: int) -> tuple[list[int], int]:
        """Return the width of each column, and the width of the gaps between them."""
        columns = list(zip(*self._rows, strict=True)) if self._rows else [()] * len(self._headings)
        widths, least, whole = [], [], []
        for heading, cells in zip(self._headings, columns, strict=True):
            is_whole = heading.strip() in _WHOLE
            widths.append(max([*map(len, heading.splitlines()), *(_width(cell) for cell in cells)]))
            words = [*map(len, heading.split()), *(max(map(len, _words(cell.plain)), default=0) for cell in cells)]
            least.append(widths[-1] if is_whole else max(words))
            whole.append(is_whole)
        gaps = len(widths) - 1
        gap = 2 if sum(widths) + 2 * gaps <= available else 1
        space = available - gap * gaps
        while sum(widths) > space:
            shrinkable = [n for n, width in enumerate(widths) if width > least[n]] or [
                n for n, width in enumerate(widths) if width > 1 and not whole[n]
            ]
            if not shrinkable:
                break
            widths[max(shrinkable, key=widths.__getitem__)] -= 1
        return widths, gap


def _width(cell: Text) -> int:
    return max((len(line) for line in cell.plain.splitlines()), default=0)


def _words(text: str) -> list[str]:
    return _BREAKS.split(text.strip())


def _wrapped(cell: Text, width: int) -> Text:
    """Return the cell with line breaks, so that each line has at most ``width`` characters where words allow it."""
    return Text("\n").join(line for part in cell.split() for line in _lines(part, width))


def _lines(line: Text, width: int) -> Iterator[Text]:
    start = end = 0
    for place in [*_BREAKS.finditer(line.plain), None]:
        upto = len(line) if place is None else place.start()
        if upto - start > width and end > start:
            yield line[start:end]
            start = len(line.plain) - len(line.plain[end:].lstrip())
        end = upto
    yield line[start:]


def plain_table(*headings: str, right: Iterable[str] = (), title: str | None = None) -> PlainTable:
    """Return a table with these columns. Those in ``right`` are aligned to the right."""
    return PlainTable(headings, right=right, title=title)


def number_text(value: Any) -> str:
    return "-" if value is None else f"{value:g}"


def bounds_text(figure: Mapping[str, Any] | None, *, sign: str = "") -> str:
    """Format a figure: ``0.8333``, or ``0.5 to 0.8333`` while answers that were not judged could change it."""
    if figure is None or figure["low"] is None:
        return "-"
    low, high = (formatted(round(figure[end], 6), ".4g", sign=sign) for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def interval_text(interval: Mapping[str, Any] | None, *, sign: str = "") -> str:
    """Format an interval."""
    if interval is None:
        return "-"
    return f"{formatted(interval['low'], '.4f', sign=sign)} to {formatted(interval['high'], '.4f', sign=sign)}"


_LINE_CHARS = 21


def range_line(low: float, high: float, *, value: float | None = None, lowest: float = 0.0) -> str:
    """Draw a range on a scale from ``lowest`` to 1, with ``o`` at a value; ``|`` is 0 on a scale from -1.

    >>> range_line(0.5, 0.75, value=0.6)
    '----------==o===-----'
    >>> range_line(-0.5, -0.5, value=-0.5, lowest=-1.0)
    '-----o----|----------'
    """

    def place(number: float) -> int:
        return round((min(max(number, lowest), 1.0) - lowest) / (1.0 - lowest) * (_LINE_CHARS - 1))

    line = ["-"] * _LINE_CHARS
    if lowest < 0:
        line[place(0.0)] = "|"
    line[place(low) : place(high) + 1] = "=" * (place(high) + 1 - place(low))
    if value is not None:
        line[place(value)] = "o"
    return "".join(line)
