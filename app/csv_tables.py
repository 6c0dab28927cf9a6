"""Tables as CSV, safe to open in a spreadsheet: a text that would be run as a formula is not one any more."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

Cell = str | int | float | bool | None
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - spreadsheets take these, too


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """RFC 4180, UTF-8 with a byte order mark, since Excel reads it as another encoding without one."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([harmless(name) for name in header])
    for row in rows:
        writer.writerow([harmless(cell) for cell in row])
    return "\ufeff" + text.getvalue()


def harmless(cell: Cell) -> str | int | float | None:
    """A cell as it is written: numbers as they are, texts never as a formula.

    The apostrophe is what OWASP advises ("CSV injection"): spreadsheets show what follows as text.
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        plain = cell.replace("\x00", "")
        return f"'{plain}" if plain.lstrip(" ").startswith(_FORMULA_STARTS) else plain
    return cell
