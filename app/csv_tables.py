"""CSV tables that are safe to open in a spreadsheet: no cell is executed as a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

Cell = str | int | float | bool | None
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - spreadsheets accept these full-width forms


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return the table as CSV (RFC 4180) that starts with a byte order mark.

    Without the mark Excel does not read the file as UTF-8.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([escape_formula(name) for name in header])
    for row in rows:
        writer.writerow([escape_formula(cell) for cell in row])
    return "\ufeff" + text.getvalue()


def escape_formula(cell: Cell) -> str | int | float | None:
    """Return the cell value with formulas disabled and booleans as ``true`` or ``false``. Numbers are unchanged.

    A text that starts like a formula is prefixed with an apostrophe, as OWASP recommends ("CSV injection").
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        text = cell.replace("\x00", "")
        return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text
    return cell
