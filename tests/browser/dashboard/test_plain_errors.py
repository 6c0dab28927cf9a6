"""Real faults as an operator reads them: cause, what to do, and continuation afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import OpenDashboard, Reader, Served, open_reader
from tests.fakes.services import watch_pauses
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

HEAD = "from judges.registry import judge\n\n\n"
JUDGES = {
    "asks": 'ctx.verify("said", ctx.answer.text)',
    "breaks": "1 / 0",
}
RIGHT = "the right key"


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a judge that requests a verdict, and one that raises."""
    folder = tmp_path_factory.mktemp("judges")
    for task, line in JUDGES.items():
        told = f'@judge(task="{task}", description="Is it so?", version="1")\nasync def {task}(ctx):\n    {line}\n'
        (folder / f"{task}.py").write_text(HEAD + told)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(api_key=RIGHT) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(open_dashboard: OpenDashboard, judges: Path, model: StandInLLM) -> AsyncIterator[Served]:
    settings = {"model": "openai/gpt-6-luna", "openai_base_url": model.base_url}
    async with open_dashboard(real_judges=True, judge_folder=judges, openai_api_key=RIGHT, **settings) as running:
        yield running


async def fault(reader: Reader, job: str) -> str:
    """Wait until the page of a job shows a fault, and return its text."""
    await reader.go(f"/jobs/{job}")
    await reader.page.wait_for_selector("#panel .fault")
    return await reader.text("#panel .fault")


async def test_wrong_key_pauses_the_job_with_an_instruction(
    open_dashboard: OpenDashboard, judges: Path, model: StandInLLM, chromium: Browser
):
    settings = {"model": "openai/gpt-6-luna", "openai_base_url": model.base_url, "openai_api_key": "a wrong key"}
    async with open_dashboard(real_judges=True, judge_folder=judges, **settings) as served:
        job = await served.submit("walker", "It is Paris.", task="asks")
        async with open_reader(chromium, served.url) as reader:
            said = await fault(reader, job)
            assert said.startswith(
                "The model's provider rejects all requests. "
                "Correct the API key or its access rights; the job then continues."
            )
            assert "LLM_REJECTED" in said and "the key is wrong or revoked" in said and "a wrong key" not in said
            assert await reader.text("#panel .big") == "paused"
            await reader.go("/")
            await reader.page.wait_for_selector('.live .state:has-text("1 paused")')


async def test_judge_file_that_raises_shows_error_and_traceback(served: Served, reader: Reader):
    said = await fault(reader, await served.submit("walker", "It is Paris.", task="breaks"))
    assert said.startswith("The task file raised an error. Fix the file at the line in the traceback, then retry.")
    assert "division by zero" in said
    await reader.page.click("summary:has-text('Traceback')")
    assert "breaks.py" in await reader.text(".fault pre") and "1 / 0" in await reader.text(".fault pre")


async def test_job_over_its_deadline_names_the_setting(open_dashboard: OpenDashboard, chromium: Browser):
    async def run_too_long(*_: object, **__: object) -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    async with (
        open_dashboard(evaluate=run_too_long, job_deadline_s=1.0) as served,
        open_reader(chromium, served.url) as reader,
    ):
        said = await fault(reader, await served.submit("walker", "It is Paris."))
    assert said.startswith("The job exceeded its deadline. Retry, or raise the time limit that is named below.")
    assert "DEADLINE: Not finished within 1 s" in said and "raise ASSAY_JOB_DEADLINE_S" in said


async def test_job_with_a_spent_budget_continues_after_a_raise(served: Served, reader: Reader):
    job = await served.submit("spender", "It is Paris.", task="asks", budget_usd=0.0000001)
    said = await fault(reader, job)
    assert said.startswith(
        "The budget for model requests is used up. Raise the budget named below; the job then continues."
    )
    assert "the submission's budget_usd" in said
    await reader.page.click("text=Open the result")
    await reader.page.click(".open-leaves summary")
    await reader.page.wait_for_selector(".open-leaves tbody tr")
    assert "The budget for model requests is used up." in await reader.text(".open-leaves tbody tr")
    submission = (await served.http.get(f"/v1/jobs/{job}")).json()["submission_id"]
    await served.http.patch(f"/v1/submissions/{submission}", json={"budget_usd": 1.0})
    await reader.go(f"/jobs/{job}")
    await reader.page.wait_for_selector('#panel .big:has-text("done")')


async def test_task_without_a_judge_is_rejected(served: Served, reader: Reader):
    body = {"agent": "walker", "task_id": "nobodys", "answers": [{"name": "answer_1", "text": "It is Paris."}]}
    refused = (await served.http.post("/v1/submissions", json=body)).json()
    assert refused["code"] == "UNKNOWN_TASK" and "nobodys" in str(refused["errors"])
    await reader.go("/agents/walker-of-nobody")
    assert "Agent 'walker-of-nobody' has no judged answers" in await reader.text("main")


async def test_job_of_a_paused_provider_continues_after_resume(
    served: Served, reader: Reader, monkeypatch: pytest.MonkeyPatch
):
    pauses_read = watch_pauses(monkeypatch)
    await served.http.post("/v1/providers/openai/pause", json={"reason": "invoice under dispute"})
    await pauses_read.wait()
    try:
        job = await served.submit("waiter", "It is Rome.", task="asks")
        said = await fault(reader, job)
        assert said.startswith("An operator paused the model's provider. Run `assay admin providers --resume NAME`")
        assert "PROVIDER_PAUSED" in said
    finally:
        await served.http.post("/v1/providers/openai/resume")
    await reader.page.wait_for_selector('#panel .big:has-text("done")')  # by live update, without a reload
