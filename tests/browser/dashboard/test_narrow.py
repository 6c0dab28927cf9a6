"""Layout on phones: no horizontal scrolling, and tables shown as cards remain tables."""

from __future__ import annotations

import pytest
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import PHONE, Reader, Served, open_reader
from tests.browser.dashboard.test_fit import screens

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]

WIDTHS = (390, 600, 639)
MAY_SCROLL = "pre, code, .shots, .prose table"
"""Code, pictures, and tables of an answer."""
OVERFLOWING = f"""() => [...document.querySelectorAll("body *")].filter((one) => {{
  if (one.closest("{MAY_SCROLL}, .unseen, .sprite, .skip, thead") || !one.checkVisibility()) return false;
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth + 1;
  const box = one.getBoundingClientRect();
  return scrolls || (box.width > 0 && box.right > document.documentElement.clientWidth + 1);
}}).map((one) => `${{one.tagName}}.${{one.className.baseVal ?? one.className}}: ${{one.textContent.slice(0, 40)}}`)"""
UNNAMED = """() => [...document.querySelectorAll("main table.data tbody td")].filter((cell) =>
  cell.dataset.label === undefined && cell.innerText.trim() && !cell.closest(".options"))
  .map((cell) => cell.innerText)"""
LABELS_OF_TABLES = """() => [...document.querySelectorAll("main table.data:not(.options)")].map((table) => {
  const heads = [...table.tHead.rows].flatMap((row) => [...row.cells]).map((cell) => cell.textContent.trim());
  return [...table.tBodies[0].rows[0].cells].map((cell) => cell.dataset.label).filter((label) => label)
    .filter((label) => !heads.includes(label));
}).flat()"""


async def overflowing_elements(reader: Reader, pages: dict[str, str]) -> dict[str, list[str]]:
    """Return elements that scroll horizontally or exceed the window, by page and width."""
    found: dict[str, list[str]] = {}
    for name, path in pages.items():
        await reader.go(path)
        await reader.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        for width in WIDTHS:
            await reader.page.set_viewport_size({"width": width, "height": PHONE[1]})
            if wide := await reader.page.evaluate(OVERFLOWING):
                found[f"{name} at {width}"] = wide[:5]
    return found


async def test_pages_do_not_scroll_horizontally_on_phones(served: Served, chromium: Browser):
    await served.http.post("/v1/pairings")
    async with open_reader(chromium, served.url, size=PHONE) as reader:
        assert await overflowing_elements(reader, await screens(served, {})) == {}


async def test_cards_have_the_column_names_of_the_table(served: Served, chromium: Browser):
    async with open_reader(chromium, served.url, size=PHONE) as reader:
        for name, path in (await screens(served, {})).items():
            await reader.go(path)
            assert await reader.page.evaluate(UNNAMED) == [], name
            assert set(await reader.page.evaluate(LABELS_OF_TABLES)) <= {"On a scale"}, name


async def test_rows_shown_as_cards_keep_their_table_roles(served: Served, chromium: Browser):
    await screens(served, {})
    async with open_reader(chromium, served.url, size=PHONE) as reader:
        await reader.go("/")
        agents = reader.page.get_by_role("table")
        assert (
            await reader.page.locator("table.agents tbody tr").first.evaluate("row => getComputedStyle(row).display")
            == "grid"
        )
        heads = await agents.get_by_role("columnheader").count()
        first = agents.get_by_role("row").nth(1)
        assert heads == await first.get_by_role("rowheader").count() + await first.get_by_role("cell").count() == 11
