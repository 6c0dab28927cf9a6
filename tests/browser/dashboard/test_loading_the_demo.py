"""The button that loads the demo, in a service as a new user starts it: real program, database, browser and pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from patchright.async_api import Browser

from app.demo.expected import EXPECTED
from app.demo.run import running_service
from assay_client import AsyncClient
from tests.acceptance.conftest import demo_port  # noqa: F401 - fixture
from tests.browser.dashboard.conftest import open_reader
from tests.fakes.folders import service_folder

pytestmark = [
    pytest.mark.browser, pytest.mark.postgres, pytest.mark.timeout(900), pytest.mark.usefixtures("demo_port"),
    pytest.mark.asyncio(loop_scope="session"),
]  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    created = service_folder("assay-demo-button-")
    yield created
    shutil.rmtree(created, ignore_errors=True)


async def test_button_judges_the_shipped_answers(chromium: Browser, folder: Path):
    # Without a model or a key. The browser of the captures is real, so it may need to run without its sandbox.
    environment = {"ASSAY_DATA_DIR": str(folder / "data"), "ASSAY_BROWSER_UNSANDBOXED": "true", "ASSAY_MODEL": ""}
    async with (
        running_service(environment, folder / "serve.log", api_key=None) as url,
        open_reader(chromium, url) as reader,
        AsyncClient(url) as client,
    ):
        await reader.go("/")
        await reader.page.click("button:text('Load the demo')")
        await reader.page.wait_for_selector("table.agents tbody tr:nth-child(3)")
        await reader.wait_until("!document.querySelector('#board .live')")
        assert await reader.page.locator("table.agents tbody tr").count() == len(EXPECTED)
        for agent, tasks in EXPECTED.items():
            scores = {one["task_id"]: one["score"] async for one in client.list_agent_history(agent)}
            for task, expected in tasks.items():
                found = scores[task]
                assert found is not None
                assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))
        # The claims that the answers get wrong are seen from the first page with two clicks.
        await reader.page.click("table.agents tr:has-text('demo-careless') a[href^='/results/']")
        await reader.page.wait_for_selector(".leaf-panel")
        assert await reader.page.locator(".leaf-panel .state-failed").count() > 0
        assert reader.page_errors == [] and reader.external_requests == []
