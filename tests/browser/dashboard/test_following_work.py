"""Jobs in the dashboard: following, failures, cancelling and retrying."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from patchright.async_api import Browser

from answers.submission import Answer
from app.progress import Progress, ProgressCallback, Stage
from app.storage.records import Job
from judges.errors import JudgeBug
from tests.browser.dashboard.conftest import OpenDashboard, Reader, Served, open_reader
from tests.fakes.evaluating import result_json

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]


class StepByStep:
    """Judging that waits until the test continues it; the text of the answer determines its end."""

    def __init__(self) -> None:
        self.steps: dict[str, asyncio.Event] = {}

    def proceed(self, text: str) -> None:
        self.steps[text].set()

    async def __call__(self, job: Job, answer: Answer, *, result_id: str, progress: ProgressCallback) -> dict:
        progress(Progress(stage=Stage.CAPTURING, pages_total=3, pages_done=1))
        await self.steps.setdefault(answer.text, asyncio.Event()).wait()
        if "broken" in answer.text:
            raise JudgeBug("ZeroDivisionError: division by zero", traceback="Traceback: line 7, in <judge>")
        progress(Progress(stage=Stage.JUDGING, pages_total=3, pages_done=3, leaves_done=2, leaves_total=2))
        return result_json(job, answer, result_id)


@pytest.fixture(scope="module")
def steps() -> StepByStep:
    return StepByStep()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(open_dashboard: OpenDashboard, steps: StepByStep) -> AsyncIterator[Served]:
    async with open_dashboard(evaluate=steps) as running:
        yield running


async def test_empty_service_shows_the_next_command_and_a_pasted_answer_appears_in_the_matrix(
    open_dashboard: OpenDashboard, steps: StepByStep, chromium: Browser
):
    async with open_dashboard(evaluate=steps) as empty, open_reader(chromium, empty.url) as reader:
        await reader.go("/")
        assert "No results yet" in await reader.text(".first-run")
        assert await reader.text(".command") == "assay submit answer.md --agent my-agent --task bridges --wait"
        assert await reader.page.locator("button:text('Load the demo')").count() == 1
        assert await reader.violations() == []
        await reader.page.select_option(".submit-form select", "towers")
        await reader.page.fill(".submit-form [name=agent]", "paster")
        await reader.page.fill(".submit-form textarea", "The tower is tall.\nSee [it](https://tower.example/).")
        await reader.page.click(".submit-form button:has-text('Submit')")
        await reader.page.wait_for_url("**/submissions/**")
        assert "paster" in await reader.text("h1") and await reader.violations() == []
        await reader.go("/")
        text = "The tower is tall.\nSee [it](https://tower.example/)."
        await reader.page.wait_for_selector("#board .live")
        steps.steps.setdefault(text, asyncio.Event()).set()
        await reader.page.wait_for_selector("table.agents tbody tr:has-text('paster')")
        assert reader.page_errors == []


async def test_failed_jobs_need_attention_and_are_retried_together(
    open_dashboard: OpenDashboard, steps: StepByStep, chromium: Browser
):
    async with open_dashboard(evaluate=steps) as service, open_reader(chromium, service.url) as reader:
        for text in ("broken first", "broken second"):
            steps.steps.setdefault(text, asyncio.Event()).set()
            await service.wait_for_job(await service.submit("walker", text, name=text.replace(" ", "_")))
        await reader.go("/")
        problem = await reader.text(".attention li")
        assert problem.startswith("2 failed jobs The task file raised an error. Fix the file")
        assert await reader.violations() == []
        for text in ("broken first", "broken second"):
            steps.steps[text] = asyncio.Event()
        await reader.page.click(".attention button:has-text('Retry')")
        await reader.page.wait_for_selector("#board .live li:nth-child(2) :text('1 running')")
        assert await reader.page.locator(".attention").count() == 0


async def test_job_page_updates_live_until_the_result_and_jobs_can_be_cancelled_and_retried(
    served: Served, steps: StepByStep, reader: Reader
):
    job = await served.submit("walker", "one")
    await reader.go(f"/jobs/{job}")
    await reader.page.wait_for_selector("#panel .state-running")
    await reader.page.wait_for_selector('#panel .big:has-text("capturing")')
    assert "1/3" in await reader.text("#panel")
    steps.proceed("one")
    await reader.page.wait_for_selector('#panel .big:has-text("done")')
    assert "2/2" in await reader.text("#panel")
    await reader.page.wait_for_selector("#panel[data-ended]")
    await reader.page.click("text=Open the result")
    await reader.page.wait_for_url("**/results/**")
    assert reader.page_errors == [] and reader.external_requests == []
    job = await served.submit("walker", "three")
    await reader.go(f"/jobs/{job}")
    await reader.page.wait_for_selector("#panel .state-running")
    await reader.page.click("text=Cancel")
    await reader.page.wait_for_selector('#panel .big:has-text("cancelled")')
    assert (await served.wait_for_job(job))["status"] == "cancelled"
    steps.steps["three"] = asyncio.Event()
    await reader.page.click("text=Retry")
    await reader.page.wait_for_selector("#panel .state-running")
    steps.proceed("three")
    await reader.page.wait_for_selector('#panel .big:has-text("done")')
