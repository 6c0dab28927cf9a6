"""Suite runs in the dashboard: figures, comparisons and single steps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import PHONE, OpenDashboard, Reader, Served, open_reader
from tests.browser.dashboard.test_fit import problems_of
from tests.fakes.mind2web import (
    mind2web_reply,
    nine_steps,
    ranks_of_nine_steps,
    write_scores,
    write_split,
)
from tests.fakes.multimodal import picture, source_row, write_rows
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]


@dataclass(frozen=True, slots=True)
class Runs:
    """Service with suite runs, and the paths of their pages."""

    served: Served
    plain: str
    pictured: str


async def run(served: Served, suite: str, **order: object) -> str:
    accepted = await served.http.post(f"/v1/suites/{suite}/runs", json=order)
    assert accepted.status_code == 202, accepted.text
    job = await served.wait_for_job(accepted.json()["id"])
    assert job["status"] == "succeeded", job
    return f"/suites/{suite}/runs/{job['id']}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def runs(open_dashboard: OpenDashboard, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Runs]:
    folder: Path = tmp_path_factory.mktemp("benchmarks")
    (folder / "good").mkdir()
    write_split(folder / "good", nine_steps())
    write_scores(folder / "scores.pkl", ranks_of_nine_steps())
    rows = [source_row(f"t{n}", 0, "CLICK", screenshot=picture(400, 300)) for n in range(3)]
    write_rows(folder / "rows_test_website.parquet", rows)
    async with StandInLLM(fault_for=mind2web_reply) as model:
        settings = {
            "suite_data": (folder,),
            "openai_base_url": model.base_url,
            "openai_api_key": "key-of-the-tests",
            "model": "openai/gpt-4o",
        }
        async with open_dashboard(real_judges=True, **settings) as served:
            scored = {"split": "test_task", "scores": "scores.pkl"}
            yield Runs(
                served,
                plain=await run(served, "mind2web", data="good", **scored),
                pictured=await run(served, "mind2web", data="rows_test_website.parquet", split="test_website"),
            )


@pytest_asyncio.fixture(loop_scope="session")
async def reader(chromium: Browser, runs: Runs) -> AsyncIterator[Reader]:
    async with open_reader(chromium, runs.served.url) as one:
        yield one


async def test_steps_can_be_filtered_and_browsed_and_show_what_was_judged(runs: Runs, reader: Reader):
    await reader.go(runs.plain)
    assert await reader.page.locator('[aria-label="Steps"] tbody tr').count() == 9
    await reader.page.get_by_label("Success").select_option("false")
    await reader.page.get_by_role("button", name="Show").click()
    await reader.page.wait_for_url("**success=false**")
    assert await reader.page.locator('[aria-label="Steps"] tbody tr').count() == 5
    await reader.go(f"{runs.plain}/steps/0")
    assert await reader.page.get_by_role("link", name="Previous step").count() == 0
    await reader.page.keyboard.press("j")
    await reader.page.wait_for_url("**/steps/1")
    await reader.page.keyboard.press("k")
    await reader.page.wait_for_url("**/steps/0")
    csv = (await runs.served.http.get(f"{runs.plain}?format=csv")).text
    assert csv.count("\n") == 10 and csv.startswith("\ufeffposition,id,task_id")
    await reader.go(f"{runs.plain}/steps/0")
    assert await reader.text("h1") == "Step T1_a passed"
    rounds = reader.page.locator(".round")
    assert await rounds.count() == 3
    last = " ".join((await rounds.last.inner_text()).split())
    assert "B <button id=0 button> blue click </button> right picked" in last
    verdict = await reader.text(".step-view .card")
    assert "Expected CLICK" in verdict and "Element right" in verdict
    assert "blue click" in await reader.text(".page-text")
    await reader.page.locator(".round summary").first.click()
    assert "Which action comes next?" in await reader.text(".round details")


async def test_suite_pages_are_accessible_and_fit_the_window(runs: Runs, chromium: Browser):
    async with open_reader(chromium, runs.served.url, size=PHONE, dark=True) as reader:
        for path in ("/suites", runs.plain, f"{runs.plain}/steps/0", f"{runs.pictured}/steps/2"):
            assert await problems_of(reader, path, PHONE) == [], path
