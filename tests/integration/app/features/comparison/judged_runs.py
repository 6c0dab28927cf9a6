"""Runs of an agent for comparisons. Each answer has two lines, and each line is a claim that states its own verdict."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from app.server.application import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.fakes.web_server import served
from tests.standin.call import Call
from tests.standin.faults import EMPTY, Fault
from tests.standin.llm import StandInLLM
from tests.standin.rules import keyword_rule

URL = "https://example.org/page"
PAGE = "Claims of all kinds stand on this page, the right ones and the wrong ones."
TASKS = ("rivers", "bridges", "towers")
RIGHT, WRONG, SILENT = "this claim is right", "this claim is wrong", "of this claim the model is silent"
JUDGE = """
from judges.registry import judge

@judge(task={task!r}, description="Say something right.")
async def judged(ctx):
    first, second = ctx.answer.text.splitlines()[:2]
    ctx.verify("first", first, sources=[{url!r}])
    ctx.verify("second", second, sources=[{url!r}])
"""


def write_judges(folder: Path) -> None:
    for task in TASKS:
        (folder / f"{task}.py").write_text(JUDGE.format(task=task, url=URL))


@asynccontextmanager
async def comparison_service(database_url: str, judges: Path, data_dir: Path, **settings: Any) -> AsyncIterator[str]:
    """Run a service with these judges and the stand-in model. Yield its URL."""
    write_judges(judges)
    async with model() as stand_in:
        chosen = settings_for_tests(
            data_dir=data_dir, database_url=database_url, model="openai/gpt-6-luna",
            openai_api_key="a key of the tests", openai_base_url=stand_in.base_url, **settings,
        )  # fmt: skip
        with served(create_app(chosen, workers=1, runtime=scripted_runtime(judges, {URL: PAGE}))) as url:
            yield url


def model() -> StandInLLM:
    """Return a stand-in model that gives each claim the verdict named in the claim."""

    def fault_for(call: Call) -> Fault | None:
        return EMPTY if "silent" in call.claim else None

    return StandInLLM(rule=keyword_rule({"wrong": False}), fault_for=fault_for)


async def judge_run(
    url: str, agent: str, run: str | None, answers: Mapping[str, tuple[str, str]], *, key: str | None = None
) -> dict[str, str]:
    """Submit one answer per task, wait for the results, and return their ids by task."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    found: dict[str, str] = {}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=240) as client:
        for task, lines in answers.items():
            # The agent and run make the texts of different runs differ.
            text = "\n".join([*lines, f"{agent} {run}"])
            body = {"agent": agent, "task_id": task, "run": run, "answers": [{"name": "answer_1", "text": text}]}
            accepted = (await client.post("/v1/submissions", json=body)).raise_for_status().json()
            found[task] = accepted["jobs"][0]["id"]
        async with asyncio.timeout(240):
            for task, job_id in found.items():
                while (job := (await client.get(f"/v1/jobs/{job_id}")).json())["status"] != "succeeded":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                found[task] = job["result_id"]
    return found
