from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from answers.submission import Answer
from app.clock import SystemClock
from app.jobs import execution as takeover_module
from app.jobs.errors import JobSuperseded
from app.jobs.execution import ATTEMPTS_EXHAUSTED, ProgressWriter, Takeover
from app.progress import Progress, ProgressCallback, Stage
from app.storage import jobs as rows
from app.storage.database import Database, connect_database
from app.storage.records import Job, JobStatus
from judges.errors import IsolationFailed
from tests.fakes.evaluating import ScriptedEvaluation, result_json
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres

DIED = IsolationFailed("the fork server died")


async def claim_by_killed_worker(rig: Rig, job_id: str) -> Job:
    """Claim a job as a worker that was killed: its queue entry is taken and its row is running."""
    job = await rig.job(job_id)
    assert job.queue_id is not None
    async with rig.database.begin() as connection:
        await connection.execute(
            text("UPDATE procrastinate_jobs SET status = 'doing', worker_id = NULL WHERE id = :id"),
            {"id": job.queue_id},
        )
        claimed = await rows.claim(connection, job_id, job.queue_id, now=job.created_at)
    assert claimed is not None
    return claimed


async def entry_of(rig: Rig, job_id: str) -> int:
    """Return the current queue entry of a job."""
    queue_id = (await rig.job(job_id)).queue_id
    assert queue_id is not None
    return queue_id


async def entries(database: Database) -> list[tuple[int, str]]:
    async with database.begin() as connection:
        found = await connection.execute(text("SELECT id, status::text FROM procrastinate_jobs ORDER BY id"))
        return [(row.id, row.status) for row in found]


async def wait_until_running(database: Database) -> None:
    """Wait until no job is queued."""
    queued = text("SELECT count(*) FROM jobs WHERE status = 'queued'")
    async with asyncio.timeout(240):
        while True:
            async with database.begin() as connection:
                if not (await connection.execute(queued)).scalar_one():
                    return
            await asyncio.sleep(0.02)


async def test_job_of_killed_worker_is_taken_over(rig: Rig):
    [job_id] = await rig.submit("one")
    await claim_by_killed_worker(rig, job_id)
    async with rig.running_worker(ScriptedEvaluation()):
        job = await rig.wait_for_job(job_id)
    assert (job.status, job.attempts) == (JobStatus.SUCCEEDED, 2)
    assert await entries(rig.database) == []


async def test_job_fails_after_too_many_killed_workers(rig: Rig):
    [job_id] = await rig.submit("one")
    for attempt in range(1, 4):
        assert (await claim_by_killed_worker(rig, job_id)).attempts == attempt
        assert await rig.takeover.sweep() == 1
    job = await rig.job(job_id)
    assert job.status is JobStatus.FAILED
    assert job.error is not None and job.error.code == ATTEMPTS_EXHAUSTED
    assert await entries(rig.database) == []


async def test_job_fails_if_the_process_of_its_judge_file_can_never_run(rig: Rig):
    [job_id] = await rig.submit("one")
    async with rig.running_worker(ScriptedEvaluation(error=lambda _: DIED)):
        job = await rig.wait_for_job(job_id)
    assert (job.status, job.attempts) == (JobStatus.FAILED, 3)
    assert job.error is not None and job.error.code == ATTEMPTS_EXHAUSTED
    assert "the fork server died" in job.error.detail
    assert await entries(rig.database) == []


async def test_stalled_worker_cannot_store_its_result(rig: Rig):
    """The worker is stopped (SIGSTOP) past its lease: the result of the second worker is stored, the first one is
    rejected."""
    [job_id] = await rig.submit("one")
    stalled = ScriptedEvaluation(gate=(gate := asyncio.Event()), score=lambda answer: 0.0)
    job = await rig.job(job_id)
    assert job.queue_id is not None
    first = asyncio.create_task(rig.execution(stalled).run(job_id, job.queue_id))
    await stalled.running.wait()
    async with rig.database.begin() as connection:
        await connection.execute(text("UPDATE procrastinate_jobs SET status = 'doing', worker_id = NULL"))
    async with rig.running_worker(ScriptedEvaluation(score=lambda answer: 1.0)):
        done = await rig.wait_for_job(job_id)
    gate.set()
    await first
    after = await rig.job(job_id)
    assert (after.result_id, after.attempts) == (done.result_id, 2)
    async with rig.database.begin() as connection:
        stored = (await connection.execute(text("SELECT final_score FROM results"))).scalars().all()
    assert stored == [1.0]


async def test_worker_that_takes_over_its_own_job_ends_the_older_attempt(rig: Rig):
    """The worker slept past its lease, then leased the job again after the sweep, while its first attempt was
    running."""
    [job_id] = await rig.submit("one")
    stalled = ScriptedEvaluation(gate=asyncio.Event())
    older_ended: list[bool] = []

    async def evaluate(job: Job, answer: Answer, *, result_id: str, progress: ProgressCallback) -> dict[str, Any]:
        if job.attempts == 1:
            return await stalled(job, answer, result_id=result_id, progress=progress)
        older_ended.append(stalled.stopped.is_set())
        return result_json(job, answer, result_id)

    execution = rig.execution(evaluate)
    first = asyncio.create_task(execution.run(job_id, await entry_of(rig, job_id)))
    await stalled.running.wait()
    async with rig.database.begin() as connection:
        await connection.execute(text("UPDATE procrastinate_jobs SET status = 'doing', worker_id = NULL"))
    assert await rig.takeover.sweep() == 1
    await execution.run(job_id, await entry_of(rig, job_id))
    await first  # returns without an error: its queue entry is gone
    assert older_ended == [True]
    job = await rig.job(job_id)
    assert (job.status, job.attempts, stalled.cancelled) == (JobStatus.SUCCEEDED, 2, [job_id])


async def test_superseded_worker_stops_at_next_progress_report(rig: Rig):
    [job_id] = await rig.submit("one")
    claimed = await claim_by_killed_worker(rig, job_id)
    writer = ProgressWriter(rig.database, claimed.fence, interval_s=0.01)
    await rig.takeover.sweep()

    async def judging() -> None:
        writer.report(Progress(stage=Stage.JUDGING, leaves_done=1, leaves_total=2))
        await asyncio.Event().wait()

    with pytest.raises(JobSuperseded):
        await writer.run_with(judging())


async def test_concurrent_sweeps_take_over_a_job_once(rig: Rig, database_url: str):
    jobs = await rig.submit(*"abcdefgh")
    for job_id in jobs:
        await claim_by_killed_worker(rig, job_id)
    async with connect_database(database_url) as other, Rig.opened(other) as second:
        taken = await asyncio.gather(rig.takeover.sweep(), second.takeover.sweep(), rig.takeover.sweep())
        assert sum(taken) == len(jobs)
    assert [status for _, status in await entries(rig.database)] == ["todo"] * len(jobs)


async def test_worker_that_was_suspended_keeps_its_jobs(rig: Rig):
    """Its heartbeat is late when its sweep runs."""
    [job_id] = await rig.submit("one")
    gate = asyncio.Event()
    evaluation = ScriptedEvaluation(gate=gate)
    async with rig.running_worker(evaluation, drain_s=60.0):
        await evaluation.running.wait()
        async with rig.database.begin() as connection:
            await connection.execute(text("DELETE FROM procrastinate_workers"))  # as if the heartbeat was too old
        assert await rig.takeover.sweep() == 0
        gate.set()
        assert (await rig.wait_for_job(job_id)).attempts == 1


async def renew_heartbeats(database: Database) -> None:
    """Make the heartbeats of all workers too old, and wait until each worker has sent one. Nobody sweeps meanwhile."""
    async with asyncio.timeout(60), database.begin() as sweep:
        await sweep.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": takeover_module._LOCK})
        async with database.begin() as connection:
            await connection.execute(text("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 day'"))
        late = text("SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat < now() - interval '1 hour'")
        while (await sweep.execute(late)).scalar_one():  # noqa: ASYNC110 - the heartbeats are in the database
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("returned", [False, True], ids=["jobs end", "jobs are returned"])
async def test_three_restarts_in_turn_of_two_workers_spend_no_attempt(rig: Rig, database_url: str, returned: bool):
    async with connect_database(database_url) as other_database, Rig.opened(other_database) as other:
        rigs, job_ids, gate = (rig, other), [], asyncio.Event()
        evaluation = ScriptedEvaluation(gate=gate)
        workers = [each.worker(evaluation, drain_s=240.0, concurrency=10) for each in rigs]
        running = [asyncio.create_task(worker.run()) for worker in workers]
        for turn in range(3):
            job_ids += await rig.submit(*(f"{turn}-{nth}" for nth in range(3)))
            await wait_until_running(rig.database)
            old, new = turn % 2, rigs[turn % 2].worker(evaluation, drain_s=240.0, concurrency=10)
            draining = asyncio.create_task(workers[old].drain())
            await renew_heartbeats(rig.database)
            assert await rigs[1 - old].takeover.sweep() == 0
            if returned:
                draining.cancel()
            else:
                gate.set()
            await asyncio.wait({draining, running[old]}, return_when=asyncio.ALL_COMPLETED)
            gate.clear()
            workers[old], running[old] = new, asyncio.create_task(new.run())
        gate.set()
        ended = [await rig.wait_for_job(job_id) for job_id in job_ids]
        for task in running:
            task.cancel()
        await asyncio.wait(running)
    assert {(job.status, job.attempts_allowed - job.attempts) for job in ended} == {(JobStatus.SUCCEEDED, 2)}


async def test_exclusive_restart_takes_over_jobs_immediately(rig: Rig, database_url: str):
    [job_id] = await rig.submit("one")
    stuck = ScriptedEvaluation(gate=asyncio.Event())
    worker = rig.worker(stuck, heartbeat_s=300.0)  # none while the other starts: it stands for a killed process
    running = asyncio.create_task(worker.run())
    await stuck.running.wait()
    async with (
        connect_database(database_url, exclusive=True) as restarted,
        Rig.opened(restarted) as rig_again,
        rig_again.running_worker(ScriptedEvaluation()),
    ):
        job = await rig_again.wait_for_job(job_id)
    assert job.status is JobStatus.SUCCEEDED
    running.cancel()
    await asyncio.wait({running})
    assert (await rig.job(job_id)).result_id == job.result_id


@pytest.mark.parametrize(("workers", "interval_s"), [(4, 1.0), (40, 10.0), (1000, 30.0)])
async def test_many_workers_sweep_less_often_each(rig: Rig, database: Database, workers: int, interval_s: float):
    """Lost jobs are still taken over in time, because so many sweep."""
    takeover = Takeover(database, rig.queue, clock=SystemClock(), stalled_s=6.0)
    async with database.begin() as connection:
        register = text("SELECT procrastinate_register_worker_v1() FROM generate_series(1, :workers)")
        await connection.execute(register, {"workers": workers})
    await takeover.sweep()
    assert takeover.interval_s == interval_s
