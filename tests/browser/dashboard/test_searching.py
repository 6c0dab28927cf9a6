"""Search page and command palette, by keyboard and screen reader."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import LAPTOP, PHONE, OpenDashboard, Served, open_reader
from tests.fakes.judged import leaf, rubric_of

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]


def rubric():
    return rubric_of(leaf("said", claim="x", sources=["https://heron.example/"]), task_id="rivers")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def searched(open_dashboard: OpenDashboard) -> AsyncIterator[Served]:
    """Service with one judged answer of the agent ``heron-5`` in a run."""
    async with open_dashboard() as running:
        await running.result("heron-5", running.judging.register("a bird", rubric), run="nightly-7")
        yield running


@pytest.mark.parametrize(("size", "dark"), [(LAPTOP, False), (PHONE, True)])
async def test_palette_is_opened_searched_and_followed_with_the_keyboard(
    searched: Served, chromium: Browser, size: tuple[int, int], dark: bool
):
    async with open_reader(chromium, searched.url, size=size, dark=dark) as reader:
        await reader.go("/")
        await reader.page.keyboard.press("/")
        await reader.page.wait_for_selector("#palette[open] [role=option]:has-text('Tasks')")
        await reader.page.keyboard.type("nightly")
        await reader.page.wait_for_selector("[role=option]:has-text('nightly-7'):has-text('heron-5')")
        await reader.wait_until("document.querySelector('#palette [role=status]').textContent === '1 found'")
        chosen = await reader.page.locator("#palette [aria-selected=true]").get_attribute("id")
        assert await reader.page.get_attribute("#palette input", "aria-activedescendant") == chosen
        assert await reader.violations() == []
        await reader.page.keyboard.press("Enter")
        await reader.page.wait_for_url("**/agents/heron-5/statistics?run=nightly-7")
        await reader.page.keyboard.press("Control+k")
        await reader.page.wait_for_selector("#palette[open] [role=option]")
        await reader.page.keyboard.press("Escape")
        assert not await reader.page.locator("#palette[open]").count()
        assert (reader.page_errors, reader.external_requests) == ([], [])
