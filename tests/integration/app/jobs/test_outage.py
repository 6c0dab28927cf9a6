"""Database outage during running jobs: no job fails and no result is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from app.storage.database import connect_database, migrate
from app.storage.embedded import EmbeddedPostgres
from app.storage.records import JobStatus
from tests.fakes.evaluating import ScriptedEvaluation
from tests.fakes.services import Rig

pytestmark = pytest.mark.postgres


def crash(folder: Path) -> None:
    """Kill the server with SIGKILL."""
    os.kill(int((folder / "postgres" / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)


async def test_jobs_survive_a_crash_of_the_database(server_folder: Path):
    server = EmbeddedPostgres(server_folder)
    url = await asyncio.to_thread(server.start)
    try:
        async with AsyncExitStack() as stack:
            database = await stack.enter_async_context(connect_database(url))
            async with database.begin() as connection:
                await migrate(connection)
            rig = await stack.enter_async_context(Rig.opened(database))
            running, waiting = await rig.submit("one", "two")
            gate = asyncio.Event()
            evaluation = ScriptedEvaluation(gate=gate)
            await stack.enter_async_context(rig.running_worker(evaluation, concurrency=1, drain_s=60.0))
            await evaluation.running.wait()
            await asyncio.to_thread(crash, server_folder)
            gate.set()  # the result is ready while the database is down
            await asyncio.to_thread(EmbeddedPostgres(server_folder).start)
            ends = [await rig.wait_for_job(job_id, within_s=120.0) for job_id in (running, waiting)]
            assert [job.status for job in ends] == [JobStatus.SUCCEEDED] * 2
            assert ends[0].attempts <= 2
    finally:
        await asyncio.to_thread(server.stop)
