"""``report.html`` of ``mind2web2 report`` in a real browser: no errors, accessible, usable with the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from patchright.async_api import Browser

from mind2web2 import report
from mind2web2.report import write_report
from tests.browser.dashboard.conftest import LAPTOP, PHONE, open_reader
from tests.compat.reported import write_project

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = write_project(tmp_path_factory.mktemp("report"), 3)
    return write_report("me", root / "eval_results", root / "cache").as_uri()


@pytest.mark.parametrize(("size", "dark"), [(LAPTOP, False), (PHONE, True)])
async def test_report_is_accessible_and_fits_without_errors(
    size: tuple[int, int], dark: bool, chromium: Browser, address: str
):
    async with open_reader(chromium, address, size=size, dark=dark) as reader:
        await reader.go("#a1")
        assert await reader.page.locator("#a1").get_attribute("open") is not None
        shot = reader.page.locator("#a1 .shot img").first
        await shot.scroll_into_view_if_needed()
        await reader.wait_until("document.querySelector('#a1 .shot img').naturalWidth === 480")
        assert await reader.violations() == []
        assert await reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (reader.page_errors, reader.external_requests) == ([], [])


async def test_large_report_unpacks_answers_when_they_are_opened_and_searched(
    chromium: Browser, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(report, "MAX_PLAIN_CHARS", 0)
    root = write_project(tmp_path, 2)
    packed = write_report("me", root / "eval_results", root / "cache").as_uri()
    async with open_reader(chromium, packed) as reader:
        await reader.go("#a1-2")
        await reader.wait_until("document.activeElement.id === 'a1-2'")
        await reader.wait_until("document.querySelector('#a1 .shot img').naturalWidth === 480")
        assert await reader.page.locator("#a2 .check").count() == 0
        await reader.page.locator("#filter-text").fill("it CLOSES at 18")
        await reader.wait_until("document.querySelector('#filter-count').textContent === '2 of 5 answers'")
        await reader.page.locator("#a4 summary h3").click()
        await reader.wait_until("document.querySelector('#a4 .tree') !== null")
        assert await reader.violations() == []
        assert (reader.page_errors, reader.external_requests) == ([], [])
