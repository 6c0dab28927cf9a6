"""A real fault as an operator reads it: cause and what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from patchright.async_api import Browser

from tests.browser.dashboard.conftest import OpenDashboard, Reader, open_reader
from tests.standin.llm import StandInLLM

pytestmark = [pytest.mark.browser, pytest.mark.postgres, pytest.mark.asyncio(loop_scope="session")]

JUDGE = """from judges.registry import judge


@judge(task="asks", description="Is it so?", version="1")
async def asks(ctx):
    ctx.verify("said", ctx.answer.text)
"""
RIGHT = "the right key"


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a judge that requests a verdict."""
    folder = tmp_path_factory.mktemp("judges")
    (folder / "asks.py").write_text(JUDGE)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def model() -> AsyncIterator[StandInLLM]:
    async with StandInLLM(api_key=RIGHT) as server:
        yield server


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
