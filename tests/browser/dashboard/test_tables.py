"""CSV and JSON downloads of every table that a page shows."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from tests.browser.dashboard.conftest import Reader, Served
from tests.browser.dashboard.test_fit import screens
from tests.browser.dashboard.test_reading_results import judged

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

TABLES = """[...document.querySelectorAll("main table:not(.prose table)")].map((table) =>
  [...table.tBodies[0].rows].map((row) => row.cells[0].innerText.replace("no run", "").trim().split(/\\s/)[0]))"""
WITH_TABLES = {
    "home", "agent", "jobs", "submission", "result", "compare", "review with overridden", "overrides", "agreement",
    "captures", "page",
}  # fmt: skip


@dataclass(slots=True)
class Downloads:
    """Tables that no downloadable file contains, and the number of tables per page."""

    missing: list[str] = field(default_factory=list)
    tables: dict[str, int] = field(default_factory=dict)


async def find_tables_in_downloads(reader: Reader, served: Served, pages: Iterable[tuple[str, str]]) -> Downloads:
    """Search every table of these pages, row by row, in the files that its page offers."""
    downloads = Downloads()
    for name, path in pages:
        await reader.go(path)
        found: list[list[str]] = await reader.page.evaluate(TABLES)
        links = await reader.page.locator("main a[download]").evaluate_all("(all) => all.map((one) => one.href)")
        files = [await rows_of(served, link) for link in links if "format=csv" in link]
        downloads.tables[name] = len(found)
        for nth, rows in enumerate(found):
            if not any(holds(file, rows) for file in files):
                downloads.missing.append(f"{name}, table {nth + 1}: {rows[:3]}")
    return downloads


async def rows_of(served: Served, link: str) -> list[list[str]]:
    answer = await served.http.get(link)
    assert answer.headers["content-type"].startswith("text/csv"), link
    return list(csv.reader(answer.text.removeprefix("\ufeff").splitlines()))[1:]


def holds(file: list[list[str]], rows: list[str]) -> bool:
    cells = " ".join(cell for row in file for cell in row)
    return len(file) >= len(rows) and all(first in cells for first in rows)


async def test_every_table_of_every_page_can_be_downloaded(served: Served, reader: Reader):
    await judged(served)
    pages = await screens(served, {})
    del pages["reference"]  # its tables describe the OpenAPI document
    downloads = await find_tables_in_downloads(reader, served, pages.items())
    assert downloads.missing == []
    assert {name for name, count in downloads.tables.items() if count} >= WITH_TABLES
    assert downloads.tables["compare"] >= 2 and downloads.tables["result"] == 1
