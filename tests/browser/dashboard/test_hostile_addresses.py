"""Hostile text in URLs, form fields and job faults: no script runs."""

from __future__ import annotations

import httpx
import pytest
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import Served, open_reader
from tests.browser.dashboard.test_hostile_text import PAYLOADS, clean

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

FIELDS = {
    "/jobs": ("agent", "task_id", "cursor", "status"),
    "/compare": ("a", "b", "table"),
    "/review": ("agent",),
    "/review/overrides": ("agent", "cursor"),
    "/pages": ("url", "task", "done"),
    "/pages/captures": ("agent", "task_id", "problem"),
    "/results/res_nothing": ("leaf",),
    "/suites/mind2web/runs/job_nothing": ("task_id",),
    "/sign-in": ("next",),
}
TOGETHER = 45


async def test_hostile_urls_run_no_script_and_send_no_request(served: Served, chromium: Browser):
    written = 0
    asked = [
        (path, name, clean(" ".join(PAYLOADS[nth : nth + TOGETHER]))[:390])
        for path, names in FIELDS.items()
        for name in names
        for nth in range(0, len(PAYLOADS), TOGETHER)
    ]
    async with open_reader(chromium, served.url) as reader:
        for path, name, value in asked:
            await reader.page.goto(str(httpx.URL(f"{served.url}{path}", params={name: value})))
            written += "alert(1)" in await reader.page.content()
        for payload in map(clean, PAYLOADS[::5]):
            await reader.page.goto(f"{served.url}/agents/{httpx.URL('/', params={'q': payload}).query.decode()[2:]}")
        refused = [page_error for page_error in reader.page_errors if "Failed to load resource" not in page_error]
        assert refused == [] and reader.external_requests == []
    assert written == 2 * len(
        range(0, len(PAYLOADS), TOGETHER)
    )  # only /compare repeats the value; all other pages reject it and do not repeat it
