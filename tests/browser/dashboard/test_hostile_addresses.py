"""Hostile text in URLs, form fields and job faults: no script runs."""

from __future__ import annotations

import httpx
import pytest
from patchright.async_api import Browser

from judges.errors import JudgeBug
from tests.browser.dashboard.conftest import OpenDashboard, Served, open_reader
from tests.browser.dashboard.test_hostile_text import PAYLOADS, clean

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

FIELDS = {
    "/jobs": ("agent", "task_id", "cursor", "status"),
    "/compare": ("a", "b", "table"),
    "/rescores": ("cursor",),
    "/rescores/rescore_nothing": ("format",),
    "/review": ("agent",),
    "/review/overrides": ("agent", "cursor"),
    "/pages": ("url", "task", "done"),
    "/pages/captures": ("agent", "task_id", "problem"),
    "/results/res_nothing": ("leaf",),
    "/suites/mind2web/runs/job_nothing": ("task_id",),
    "/suites/mind2web/compare": ("a", "table"),
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


async def test_hostile_text_of_a_fault_runs_no_script(open_dashboard: OpenDashboard, chromium: Browser):
    everything = clean("\n".join(PAYLOADS))

    async def broken(*_: object, **__: object) -> dict[str, object]:
        raise JudgeBug(everything, traceback=everything)

    async with open_dashboard(evaluate=broken) as served, open_reader(chromium, served.url) as reader:
        job = await served.submit("breaker", "It is said.")
        await reader.go(f"/jobs/{job}")  # from the event stream or the page, whichever comes first
        await reader.page.wait_for_selector("#panel .fault pre", state="attached")
        assert "<script>alert(1)</script>" in (await reader.page.text_content("#panel .fault pre") or "")
        await served.wait_for_job(job)
        submission = (await served.http.get(f"/v1/jobs/{job}")).json()["submission_id"]
        for path in (f"/jobs/{job}", "/jobs", f"/submissions/{submission}", "/agents/breaker", "/"):
            await reader.go(path)
        assert reader.external_requests == []
        assert [page_error for page_error in reader.page_errors if "Failed to load" not in page_error] == []
