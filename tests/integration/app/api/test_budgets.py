"""Budgets of a submission and of the installation. Jobs pause when the budget is used up. The model is a stand-in
server over HTTP with the prices of o4-mini."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.server.application import create_app
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests
from tests.integration.app.api.api_calls import running_app, submit, wait_for_job
from tests.standin.llm import StandInLLM

pytestmark = pytest.mark.postgres

CLAIMS = 8
VOTES = 2
JUDGE = f"""
from judges.registry import judge

@judge(task="claims", description="Many claims.")
async def claims(ctx):
    for number in range({CLAIMS}):
        ctx.verify(f"claim_{{number}}", f"The answer names number {{number}}")
"""
ENOUGH = 100.0

Start = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def start(database_url: str, judges: Path, tmp_path: Path, model: StandInLLM) -> Start:
    """Return a factory for the service. All instances share the database; the reply cache is off, so only checkpoints
    are reused."""
    (judges / "claims.py").write_text(JUDGE)

    @asynccontextmanager
    async def started(**overrides: Any) -> AsyncIterator[httpx.AsyncClient]:
        settings = settings_for_tests(
            data_dir=tmp_path,
            database_url=database_url,
            model="openai/o4-mini",
            openai_base_url=model.base_url,
            reply_cache_bytes=0,
            max_llm=2,
            **overrides,
        )
        app = create_app(settings, runtime=scripted_runtime(judges))
        async with running_app(app) as client:
            yield client

    return started


async def paused(api: httpx.AsyncClient, job_id: str, *, or_done: bool = False) -> dict[str, Any]:
    async with asyncio.timeout(240):
        while True:
            job: dict[str, Any] = (await api.get(f"/v1/jobs/{job_id}")).json()
            if job["stage"] == "paused" or (or_done and job["status"] == "succeeded"):
                return job
            assert job["status"] in ("queued", "running"), job
            await asyncio.sleep(0.05)


async def result(api: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await api.get(f"/v1/results/{job['result_id']}")).json()
    return found


async def submission_of(api: httpx.AsyncClient, job_id: str) -> dict[str, Any]:
    job = (await api.get(f"/v1/jobs/{job_id}")).json()
    found: dict[str, Any] = (await api.get(f"/v1/submissions/{job['submission_id']}")).json()
    return found


def reasons(found: dict[str, Any]) -> list[str | None]:
    return [leaf["reason"] for leaf in found["eval_breakdown"][0]["verification_tree"]["children"]]


async def cost_of_one_answer(start: Start, model: StandInLLM) -> float:
    """Judge one answer and return its cost."""
    async with start() as api:
        [job_id] = await submit(api, task_id="claims")
        whole = await result(api, await wait_for_job(api, job_id))
        assert (await submission_of(api, job_id))["spent_usd"] == pytest.approx(whole["usage"]["usd"], abs=1e-6)
    model.calls.clear()
    return float(whole["usage"]["usd"])


async def test_submission_pauses_at_its_budget_and_resumes_when_it_is_raised(start: Start, model: StandInLLM):
    price = await cost_of_one_answer(start, model)
    budget = price / 2 + 0.01  # reservations use the estimated cost, which is higher than the actual cost
    async with start() as api:
        [job_id] = await submit(api, task_id="claims", budget_usd=budget)
        job = await paused(api, job_id)
        assert (job["status"], job["error"]["code"], job["attempts"]) == ("queued", "BUDGET", 1)
        assert "the submission's budget_usd" in job["error"]["detail"]
        partial = await result(api, job)
        assert partial["status"] == "incomplete"
        assert 0 < reasons(partial).count("budget") < CLAIMS
        assert partial["score"]["low"] < partial["score"]["high"]
        submission = await submission_of(api, job_id)
        assert partial["usage"]["usd"] == pytest.approx(submission["spent_usd"], abs=1e-6)
        assert submission["spent_usd"] <= budget

        changed = await api.patch(f"/v1/submissions/{submission['id']}", json={"budget_usd": ENOUGH})
        assert (changed.status_code, changed.json()["budget_usd"]) == (200, ENOUGH)
        done = await wait_for_job(api, job_id)
        whole = await result(api, done)
    assert (done["status"], whole["status"], done["error"]) == ("succeeded", "complete", None)
    assert len(model.calls) == CLAIMS * VOTES
    assert whole["usage"]["usd"] == pytest.approx(price)
    assert whole["usage"]["calls"] == CLAIMS * VOTES


async def test_service_budget_pauses_all_jobs_until_restart_with_larger_budget(start: Start, model: StandInLLM):
    price = await cost_of_one_answer(start, model)
    answers = [{"name": f"answer_{nth}", "text": f"The {nth}th."} for nth in range(3)]
    budget = price + price / 2 + 0.01  # the first answer counts towards the budget of the installation
    async with start(budget_usd=budget) as api:
        job_ids = await submit(api, task_id="claims", answers=answers)
        jobs = [await paused(api, job_id) for job_id in job_ids]
        assert {job["error"]["code"] for job in jobs} == {"BUDGET"}
        assert all("ASSAY_BUDGET_USD" in job["error"]["detail"] for job in jobs)
        spent = (await submission_of(api, job_ids[0]))["spent_usd"]
        assert spent <= budget - price
    async with start(budget_usd=ENOUGH) as api:
        ends = [await wait_for_job(api, job_id) for job_id in job_ids]
        results = [await result(api, job) for job in ends]
    assert {job["status"] for job in ends} == {"succeeded"}
    assert {found["status"] for found in results} == {"complete"}
    assert len(model.calls) == len(answers) * CLAIMS * VOTES


async def test_two_workers_share_one_budget(start: Start, model: StandInLLM):
    price = await cost_of_one_answer(start, model)
    model.delay_s = 0.02
    answers = [{"name": f"answer_{nth}", "text": f"The {nth}th."} for nth in range(4)]
    budget = 2 * price + 0.02
    async with start() as api, start():
        job_ids = await submit(api, task_id="claims", answers=answers, budget_usd=budget)
        for job_id in job_ids:
            await paused(api, job_id, or_done=True)
        spent = (await submission_of(api, job_ids[0]))["spent_usd"]
    assert spent <= budget
    assert spent == pytest.approx(len(model.calls) * price / (CLAIMS * VOTES), rel=0.05)
    assert len(model.calls) < len(answers) * CLAIMS * VOTES
