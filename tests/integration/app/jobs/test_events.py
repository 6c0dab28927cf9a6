from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text

from app.jobs.events import JobEvents
from app.storage.records import Job, JobStatus
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres


@asynccontextmanager
async def running_events(rig: Rig) -> AsyncIterator[JobEvents]:
    events = JobEvents(rig.database)
    task = asyncio.create_task(events.run())
    try:
        yield events
    finally:
        task.cancel()
        await asyncio.wait({task})


async def follow_to_end(events: JobEvents, job_id: str) -> list[Job]:
    seen: list[Job] = []
    with events.follow(job_id) as follower:
        while not seen or not seen[-1].has_ended:
            job = await follower.next(timeout_s=60.0)
            assert job is not None
            seen.append(job)
    return seen


async def test_follower_gets_current_state_and_all_later_states(rig: Rig):
    [job_id] = await rig.submit("one")
    gate = asyncio.Event()
    async with running_events(rig) as events:
        with events.follow(job_id) as follower:
            seen = [await follower.next(timeout_s=60.0)]
            async with rig.running_worker(ScriptedEvaluation(gate=gate)):
                while seen[-1] is not None and not seen[-1].has_ended:
                    seen.append(await follower.next(timeout_s=60.0))
                    if seen[-1] is not None and seen[-1].stage == "capturing":
                        gate.set()
    states = [job for job in seen if job is not None]
    assert (states[0].status, states[-1].status) == (JobStatus.QUEUED, JobStatus.SUCCEEDED)
    assert "capturing" in [job.stage for job in states]
    assert [job.revision for job in states] == sorted({job.revision for job in states})


async def test_follower_of_ended_job_gets_final_state(rig: Rig):
    [job_id] = await rig.submit("one")
    async with rig.running_worker(ScriptedEvaluation()):
        await rig.wait_for_job(job_id)
    async with running_events(rig) as events:
        assert [job.status for job in await follow_to_end(events, job_id)] == [JobStatus.SUCCEEDED]


async def test_follower_gets_final_state_after_lost_connection(rig: Rig):
    [job_id] = await rig.submit("one")
    async with running_events(rig) as events:
        following = asyncio.create_task(follow_to_end(events, job_id))
        ended = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN assay_jobs'")
        async with asyncio.timeout(240), rig.database.begin() as connection:
            while not (await connection.execute(ended)).all():  # noqa: ASYNC110 - the listener starts
                await asyncio.sleep(0.02)
        async with rig.running_worker(ScriptedEvaluation()):
            await rig.wait_for_job(job_id)
        async with asyncio.timeout(240):
            seen = await following
    assert seen[-1].status is JobStatus.SUCCEEDED


async def test_follower_of_an_owner_gets_the_changes_of_all_its_jobs(rig: Rig):
    async with running_events(rig) as events:
        with events.follow_owner("local") as own, events.follow_owner("another") as other:
            await own.next(timeout_s=60.0)
            assert own.is_interrupted  # the listener has started, and earlier changes were not followed
            ids = set(await rig.submit("one") + await rig.submit("two"))
            ended: set[str] = set()
            async with asyncio.timeout(240), rig.running_worker(ScriptedEvaluation()):
                while ended != ids:
                    ended |= {job.id for job in await own.next(timeout_s=60.0) if job.has_ended}
            assert await other.next(timeout_s=0.01) == []
    assert events.followers == 0
