"""Many jobs and several workers on one queue: each job starts exactly once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from app.progress import Progress, Stage
from app.storage import jobs as rows
from app.storage.records import JobStatus
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres


async def test_only_one_of_concurrent_completions_succeeds(rig: Rig):
    [job_id] = await rig.submit("one")
    job = await rig.job(job_id)
    assert job.queue_id is not None
    async with rig.database.begin() as connection:
        claimed = await rows.claim(connection, job_id, job.queue_id, now=job.created_at)
    assert claimed is not None

    async def end() -> bool:
        async with rig.database.begin() as connection:
            ended = await rows.succeed(
                connection, claimed.fence, result_id="res", progress=Progress(stage=Stage.STORING), now=job.created_at
            )
            return ended is not None

    assert sorted(await asyncio.gather(*(end() for _ in range(8)))) == [False] * 7 + [True]


class JumpingClock:
    """Clock that jumps back and forth by hours."""

    def __init__(self) -> None:
        self._hours = iter([0, 2, -2, 0, -2, 2] * 100)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(hours=next(self._hours))


async def test_clock_jumps_lose_no_lease_and_keep_job_times_ordered(rig: Rig):
    jobs = await rig.submit("one", "two", "three")
    evaluation = ScriptedEvaluation(gate=(gate := asyncio.Event()))
    worker = rig.worker(evaluation, drain_s=60.0)
    worker._execution._clock = JumpingClock()
    running = asyncio.create_task(worker.run())
    await evaluation.running.wait()
    async with Rig.opened(rig.database) as other:
        assert await other.takeover.sweep() == 0
    gate.set()
    ended = [await rig.wait_for_job(job_id, within_s=120.0) for job_id in jobs]
    running.cancel()
    await asyncio.wait({running})
    assert [(job.status, job.attempts) for job in ended] == [(JobStatus.SUCCEEDED, 1)] * 3
    for job in ended:
        assert job.started_at is not None and job.finished_at is not None
        assert job.created_at <= job.started_at <= job.finished_at
