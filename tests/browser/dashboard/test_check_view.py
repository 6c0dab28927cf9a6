"""Reading view of a citation check, as a file and in the dashboard: no errors, accessible, usable with the keyboard."""

from __future__ import annotations

import asyncio

import pytest
from patchright.async_api import Browser

from app.features.check.reading_view import render_view
from tests.browser.dashboard.conftest import LAPTOP, PHONE, open_reader
from tests.unit.app.features.check.checked import checked_report

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    document, evidence = checked_report()
    file = tmp_path_factory.mktemp("check") / "check.html"
    file.write_text(asyncio.run(render_view(document, evidence.read)), "utf-8")
    return file.as_uri()


@pytest.mark.parametrize(("size", "dark"), [(LAPTOP, False), (PHONE, True)])
async def test_view_is_accessible_and_fits_without_errors(
    size: tuple[int, int], dark: bool, chromium: Browser, address: str
):
    async with open_reader(chromium, address, size=size, dark=dark) as reader:
        await reader.go("#s0")
        await reader.wait_until("document.querySelector('#s0 img').naturalWidth > 0")
        assert await reader.violations() == []
        assert await reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (reader.page_errors, reader.external_requests) == ([], [])


async def test_click_on_a_statement_opens_its_quote_and_keys_move_on(chromium: Browser, address: str):
    async with open_reader(chromium, address) as reader:
        await reader.go("")
        assert await reader.page.locator(".panel:visible").get_attribute("id") == "s1"  # the first problem
        await reader.page.locator("[data-statement='0']").click()
        assert await reader.text(".panel:visible mark") == "the Velm Institute was founded in 1931"
        await reader.page.keyboard.press("f")
        assert await reader.page.locator(".panel:visible").get_attribute("id") == "s1"
        await reader.page.keyboard.press("j")
        assert await reader.page.locator(".panel:visible").get_attribute("id") == "s2"
        await reader.page.keyboard.press("k")
        assert await reader.page.locator(".panel:visible").get_attribute("id") == "s1"
        await reader.page.locator(".filter[data-outcome='contradicted']").click()
        assert await reader.page.locator("[data-statement]:not(.dim)").count() == 1
        await reader.page.emulate_media(media="print")
        assert await reader.page.locator(".panel:visible").count() == 10
        assert reader.page_errors == []
