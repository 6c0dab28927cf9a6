from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from app.storage.records import Job, JobStatus
from judges.errors import LLMRejected, RejectionScope
from judges.llm.circuit import CircuitState
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.services import CANARY, Rig

pytestmark = pytest.mark.postgres

WRONG_KEY = LLMRejected(f"401 no such key {CANARY}", status=401, scope=RejectionScope.ENDPOINT)


async def wait_until(rig: Rig, job_id: str, holds: Callable[[Job], bool]) -> Job:
    async with asyncio.timeout(240):
        while not holds(job := await rig.job(job_id)):  # noqa: ASYNC110 - the state is in the database
            await asyncio.sleep(0.02)
    return job


def reject_first(times: int) -> ScriptedEvaluation:
    return ScriptedEvaluation(error=lambda nth: WRONG_KEY if nth < times else None)


async def test_rejected_job_is_paused_with_remedy_and_without_attempt(rig: Rig):
    [job_id] = await rig.submit("one")
    async with rig.running_worker(reject_first(1)):
        job = await wait_until(rig, job_id, lambda job: job.is_paused)
        assert await rig.takeover.sweep() == 0
    assert await rig.job(job_id) == job
    assert (job.status, job.stage, job.attempts, job.queue_id) == (JobStatus.QUEUED, "paused", 0, None)
    assert job.error is not None
    assert job.error.code == "LLM_REJECTED"
    assert "fix the key" in job.error.detail
    assert CANARY not in job.error.detail


async def test_one_job_resumes_first_to_probe_the_provider(rig: Rig):
    job_ids = await rig.submit("one", "two", "three")
    evaluation = reject_first(3)
    async with rig.running_worker(evaluation):
        for job_id in job_ids:
            await wait_until(rig, job_id, lambda job: job.is_paused)
        rig.models.states[None] = CircuitState.HALF_OPEN
        await rig.wait_for_job(job_ids[0])
        rig.models.states[None] = CircuitState.CLOSED
        for job_id in job_ids:
            assert (await rig.wait_for_job(job_id)).status is JobStatus.SUCCEEDED
    assert evaluation.started[3] == job_ids[0]


async def test_next_job_resumes_only_after_the_probing_job_ended(rig: Rig):
    job_ids = await rig.submit("one", "two")
    async with rig.running_worker(reject_first(2)):
        for job_id in job_ids:
            await wait_until(rig, job_id, lambda job: job.is_paused)
    rig.models.states[None] = CircuitState.UNTRIED
    assert [await rig.pausing.resume_ready_jobs() for _ in range(3)] == [1, 0, 0]
    assert [(await rig.job(job_id)).is_paused for job_id in job_ids] == [False, True]
    await rig.control.cancel(job_ids[0])
    assert await rig.pausing.resume_ready_jobs() == 1


async def test_retry_resumes_paused_job_and_requests_probe(rig: Rig):
    [job_id] = await rig.submit("one")
    async with rig.running_worker(reject_first(1)):
        await wait_until(rig, job_id, lambda job: job.is_paused)
        resumed = await rig.control.retry(job_id)
        assert (resumed.status, resumed.stage, resumed.error) == (JobStatus.QUEUED, None, None)
        job = await rig.wait_for_job(job_id)
    assert (job.status, job.attempts, job.error) == (JobStatus.SUCCEEDED, 1, None)
    assert rig.models.probed == [None]


async def test_paused_job_can_be_cancelled(rig: Rig):
    [job_id] = await rig.submit("one")
    async with rig.running_worker(reject_first(1)):
        await wait_until(rig, job_id, lambda job: job.is_paused)
        assert (await rig.control.cancel(job_id)).status is JobStatus.CANCELLED
        rig.models.states[None] = CircuitState.CLOSED
        assert await rig.pausing.resume_ready_jobs() == 0
    assert (await rig.job(job_id)).status is JobStatus.CANCELLED
