from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from app.jobs import execution
from app.jobs.errors import JobNotFound, JobStateConflict
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.records import JobStatus
from app.storage.results import get_result
from judges.errors import JudgeBug, ScriptStopped
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.services import CANARY, Rig

pytestmark = pytest.mark.postgres


async def load_result(database: Database, result_id: str | None):
    async with database.begin() as connection:
        record = await get_result(connection, result_id or "")
    assert record is not None
    return json.loads(record.body)


async def test_job_is_judged_and_result_stored(rig: Rig):
    [job_id] = await rig.submit("An answer.")
    async with rig.running_worker(ScriptedEvaluation(score=lambda answer: 0.5)):
        job = await rig.wait_for_job(job_id)
    assert job.status is JobStatus.SUCCEEDED
    assert (job.pages_done, job.leaves_done, job.attempts, job.stage) == (2, 1, 1, None)
    result = await load_result(rig.database, job.result_id)
    assert result["id"] == job.result_id
    assert result["final_score"] == 0.5


async def test_judge_bug_fails_only_its_job_with_traceback(rig: Rig):
    jobs = await rig.submit("one", "two")
    bug = JudgeBug(f"ZeroDivisionError: {CANARY}", traceback=f"File task.py, line 3 {CANARY}")
    broken = ScriptedEvaluation(error=lambda nth: bug if nth == 0 else None)
    async with rig.running_worker(broken, concurrency=1):
        ended = [await rig.wait_for_job(job_id) for job_id in jobs]
    failed, fine = sorted(ended, key=lambda job: job.status)
    assert (failed.status, fine.status) == (JobStatus.FAILED, JobStatus.SUCCEEDED)
    assert failed.error is not None and failed.error.code == "JUDGE_BUG"
    assert failed.error.traceback == "File task.py, line 3 [redacted]"
    assert CANARY not in failed.error.detail
    assert failed.result_id is None


@pytest.mark.parametrize(
    ("limit", "code", "remedy"),
    [
        ("time", "DEADLINE", ". Fix the task file, or raise ASSAY_JOB_DEADLINE_S"),
        ("memory", "SCRIPT_LIMIT", ". Fix the task file, or raise ASSAY_SCRIPT_MEMORY_BYTES"),
        ("result", "SCRIPT_LIMIT", ""),
    ],
)
async def test_stopped_judge_reports_its_limit(rig: Rig, limit: str, code: str, remedy: str):
    [job_id] = await rig.submit("one")
    stopped = ScriptStopped("it took too much", limit=limit, traceback=f"its last words {CANARY}")
    async with rig.running_worker(ScriptedEvaluation(error=lambda nth: stopped)):
        job = await rig.wait_for_job(job_id)
    assert job.error is not None
    assert (job.error.code, job.error.detail) == (code, f"it took too much{remedy}")
    assert job.error.traceback == "its last words [redacted]"


async def test_result_that_is_not_json_fails_the_job(rig: Rig):
    [job_id] = await rig.submit("one")
    evaluation = ScriptedEvaluation(change=lambda result: result.update(final_score=float("nan")))
    async with rig.running_worker(evaluation):
        job = await rig.wait_for_job(job_id)
    assert job.error is not None and job.error.code == "INTERNAL"


async def test_text_invalid_for_postgres_is_stored_escaped(rig: Rig):
    [job_id] = await rig.submit("one")
    evaluation = ScriptedEvaluation(change=lambda result: result.update(note="a\0b \ud800 c"))
    async with rig.running_worker(evaluation):
        job = await rig.wait_for_job(job_id)
    assert (await load_result(rig.database, job.result_id))["note"] == "a\0b ? c"


async def test_job_past_its_deadline_fails(rig: Rig):
    [job_id] = await rig.submit("one")
    evaluation = ScriptedEvaluation(gate=asyncio.Event())
    job = await rig.job(job_id)
    assert job.queue_id is not None
    await rig.execution(evaluation, deadline_s=0.05).run(job_id, job.queue_id)
    job = await rig.job(job_id)
    assert job.error is not None and job.error.code == "DEADLINE"
    assert "Retry" in job.error.detail and "raise ASSAY_JOB_DEADLINE_S" in job.error.detail
    assert evaluation.cancelled == [job_id]


async def test_cancelled_running_job_is_interrupted(rig: Rig):
    [job_id] = await rig.submit("one")
    evaluation = ScriptedEvaluation(gate=asyncio.Event())
    async with rig.running_worker(evaluation):
        await evaluation.running.wait()
        cancelled = await rig.control.cancel(job_id)
        assert cancelled.status is JobStatus.CANCELLED
        async with asyncio.timeout(240):  # the deadline is 300
            await evaluation.stopped.wait()
    assert evaluation.cancelled == [job_id]
    assert (await rig.job(job_id)).status is JobStatus.CANCELLED


async def test_cancel_is_idempotent_and_rejects_ended_jobs(rig: Rig):
    [job_id, other] = await rig.submit("one", "two")
    await rig.control.cancel(job_id)
    assert (await rig.control.cancel(job_id)).status is JobStatus.CANCELLED
    async with rig.running_worker(ScriptedEvaluation()):
        await rig.wait_for_job(other)
    with pytest.raises(JobStateConflict):
        await rig.control.cancel(other)
    with pytest.raises(JobNotFound):
        await rig.control.cancel("job_unknown")


async def test_failed_job_can_be_retried(rig: Rig):
    [job_id] = await rig.submit("one")
    evaluation = ScriptedEvaluation(error=lambda nth: JudgeBug("broken") if nth == 0 else None)
    with pytest.raises(JobStateConflict):
        await rig.control.retry(job_id)
    async with rig.running_worker(evaluation):
        assert (await rig.wait_for_job(job_id)).status is JobStatus.FAILED
        again = await rig.control.retry(job_id)
        assert (again.status, again.error) == (JobStatus.QUEUED, None)
        job = await rig.wait_for_job(job_id)
    assert (job.status, job.attempts) == (JobStatus.SUCCEEDED, 2)


async def test_stopping_worker_lets_running_jobs_finish(rig: Rig):
    [job_id] = await rig.submit("one")
    gate = asyncio.Event()
    evaluation = ScriptedEvaluation(gate=gate)
    async with rig.running_worker(evaluation, drain_s=60.0):
        await evaluation.running.wait()
        asyncio.get_running_loop().call_later(0.1, gate.set)
    assert (await rig.job(job_id)).status is JobStatus.SUCCEEDED


async def test_stopping_worker_requeues_slow_jobs_without_losing_an_attempt(rig: Rig):
    [job_id] = await rig.submit("one")
    evaluation = ScriptedEvaluation(gate=asyncio.Event())
    async with rig.running_worker(evaluation, drain_s=0.0):
        await evaluation.running.wait()
    job = await rig.job(job_id)
    assert (job.status, job.attempts, job.attempts_allowed) == (JobStatus.QUEUED, 1, 4)
    async with rig.running_worker(ScriptedEvaluation()):
        assert (await rig.wait_for_job(job_id)).status is JobStatus.SUCCEEDED


@pytest.mark.parametrize("claimed", [False, True], ids=["before the claim is committed", "before the attempt begins"])
async def test_worker_that_stops_while_it_claims_a_job_spends_no_attempt(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, claimed: bool
):
    [job_id] = await rig.submit("one")
    queue_id, answer_text = (await rig.job(job_id)).queue_id or 0, rows.answer_text

    async def cancelling(connection: Any, sha256: str) -> str:
        found = await answer_text(connection, sha256)
        asyncio.get_running_loop().call_soon(running.cancel)
        return found

    class CancellingLog:
        """Log that cancels the job at its first message, immediately before the attempt begins."""

        def info(self, *message: object, **fields: object) -> None:
            running.cancel()

    if claimed:
        monkeypatch.setattr(execution, "_log", CancellingLog())
    else:
        monkeypatch.setattr(rows, "answer_text", cancelling)
    evaluation = ScriptedEvaluation()
    running = asyncio.create_task(rig.execution(evaluation).run(job_id, queue_id))
    await asyncio.wait({running})
    job = await rig.job(job_id)
    assert running.cancelled() and evaluation.started == []
    assert (job.status, job.attempts_allowed - job.attempts) == (JobStatus.QUEUED, 3)


async def test_lost_database_requeues_the_job(rig: Rig):
    [job_id] = await rig.submit("one")
    evaluation = ScriptedEvaluation(error=lambda nth: DatabaseUnavailable("away") if nth == 0 else None)
    async with rig.running_worker(evaluation):
        job = await rig.wait_for_job(job_id)
    assert (job.status, job.attempts) == (JobStatus.SUCCEEDED, 2)
