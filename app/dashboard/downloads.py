"""CSV downloads of tables."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from fastapi import Response

from app.csv_tables import Cell, to_csv
from app.dashboard.rendering import HEADERS


class Format(StrEnum):
    """Format of a page: HTML, or its table as CSV."""

    HTML = "html"
    CSV = "csv"


async def csv_file(name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Response:
    """Return the table as a download named ``name``.csv."""
    safe_name = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    headers = HEADERS | {"Content-Disposition": f'attachment; filename="{safe_name}.csv"'}
    text = await asyncio.to_thread(to_csv, header, rows)
    body = text.encode("utf-8", "replace")
    return Response(body, media_type="text/csv; charset=utf-8", headers=headers)
