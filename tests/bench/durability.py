"""Rows for queue and workers: random kills, time to lease a job, and scaling from one to three workers.

The public toolkit has neither.

Only the model, the pages and the web are replaced. Workers are processes on a private PostgreSQL.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from app.storage.database import Database, connect_database, migrate
from app.storage.embedded import EmbeddedPostgres
from tests.bench.row import Row
from tests.fakes.services import Rig
from tests.faults.fork_server import WorkerForkServer
from tests.faults.killing import JUDGE, PAGE, RULE, TASK, URL, KillOutcome, RandomKillTest
from tests.standin.llm import StandInLLM

KILLS = 1000
QUEUED = 100_000
WORKERS = 3
_BATCH = 1000


@asynccontextmanager
async def private_database() -> AsyncIterator[tuple[Database, Path]]:
    """Open the database of a private PostgreSQL server, with the folder that is removed with it."""
    folder = _folder()
    server = EmbeddedPostgres(folder)
    url = await asyncio.to_thread(server.start)
    try:
        async with connect_database(url) as database:
            async with database.begin() as connection:
                await migrate(connection)
            yield database, folder
    finally:
        await asyncio.to_thread(server.stop)
        shutil.rmtree(folder, ignore_errors=True)


def _folder() -> Path:
    """Return a new folder that the database account can enter."""
    folder = Path(tempfile.mkdtemp(prefix="assay-bench-"))
    folder.chmod(0o755)
    return folder


def measure_kills(kills: int) -> KillOutcome:
    """Kill or pause workers ``kills`` times, over waves of fifty jobs."""

    async def run() -> KillOutcome:
        async with private_database() as (database, folder):
            work = folder / "work"
            work.mkdir()
            return await RandomKillTest(database, work, seed=2026).run(kills=kills, wave=50, within_s=3600.0)

    return asyncio.run(run())


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """Seconds to lease a job with so many in the queue: median and 99th percentile."""

    queued: int
    p50_s: float
    p99_s: float


def measure_leases(queued: int, *, times: int = 500) -> Leases:
    """Queue jobs, and lease some of them one after the other like a worker."""

    async def run() -> list[float]:
        async with private_database() as (database, _), Rig.opened(database) as rig:
            for _ in range(queued // _BATCH):
                async with database.begin() as connection:
                    await rig.queue.enqueue(connection, [f"job_{nth}" for nth in range(_BATCH)])
            async with database.engine.connect() as raw:
                # The service does this by itself when many jobs arrive at once.
                analyse = await raw.execution_options(isolation_level="AUTOCOMMIT")
                await analyse.execute(text("ANALYZE procrastinate_jobs"))
            found = []
            async with database.engine.connect() as connection:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                worker = (await connection.execute(text("SELECT procrastinate_register_worker_v1()"))).scalar_one()
                for _ in range(times):
                    began = time.perf_counter()
                    await connection.execute(_FETCH, {"worker": worker})
                    found.append(time.perf_counter() - began)
            return sorted(found)

    took = asyncio.run(run())
    return Leases(queued=queued, p50_s=took[len(took) // 2], p99_s=took[int(len(took) * 0.99)])


_FETCH = text("SELECT id FROM procrastinate_fetch_job_v2(ARRAY['answers']::varchar[], :worker)")


def measure_scaling(counts: Sequence[int], *, jobs_each: int = 24, delay_s: float = 1.0) -> dict[int, float]:
    """Return jobs per second by number of workers, with ``jobs_each`` jobs per worker and a model latency of
    ``delay_s``.
    """

    async def run() -> dict[int, float]:
        found = {}
        async with private_database() as (database, folder), StandInLLM(rule=RULE, delay_s=delay_s) as model:
            (folder / "judges").mkdir()
            (folder / "judges" / "counts.py").write_text(JUDGE)
            async with Rig.opened(database) as rig:
                for count in counts:
                    found[count] = await _rate(database, folder, model, rig, count, jobs_each * count)
        return found

    return asyncio.run(run())


async def _rate(database: Database, folder: Path, model: StandInLLM, rig: Rig, workers: int, jobs: int) -> float:
    """Return the rate between the first and the last finished job, which excludes the start of processes."""
    settings = {
        "data_dir": str(folder / f"data_{workers}"),
        "database_url": database.url,
        "model": "openai/gpt-6-luna",
        "openai_base_url": model.base_url,
        "reply_cache_bytes": 0,
    }
    options = {"judges": str(folder / "judges"), "settings": settings, "pages": {URL: PAGE}, "jobs": 4}
    with WorkerForkServer(folder / f"workers_{workers}.log") as fork_server:
        for _ in range(workers):
            await asyncio.to_thread(fork_server.start, **options)
        while await _count(database, "SELECT count(*) FROM procrastinate_workers") < workers:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        before = await _count(database, _DONE)
        began = time.monotonic()
        for nth in range(jobs):
            await rig.submit(f"Runner {workers}.{nth}", task_id=TASK)
        while await _count(database, _DONE) < before + jobs:  # noqa: ASYNC110 - they are other processes
            await asyncio.sleep(0.05)
        took = time.monotonic() - began
    async with database.begin() as connection:
        await connection.execute(text("DELETE FROM procrastinate_workers"))
    return jobs / took


_DONE = "SELECT count(*) FROM jobs WHERE status = 'succeeded'"


async def _count(database: Database, query: str) -> int:
    async with database.begin() as connection:
        return int((await connection.execute(text(query))).scalar_one())


def kills() -> Iterator[Row]:
    outcome = measure_kills(KILLS)
    faults = "".join(f"; {fault}" for fault in outcome.faults[:3])
    yield Row(
        what=f"workers killed or paused while they judge {outcome.jobs} answers",
        toolkit="",
        target="0 lost, 0 duplicate, 0 wrong",
        ours=f"{len(outcome.lost)} lost, {len(outcome.duplicate)} duplicate, {len(outcome.wrong)} wrong",
        met=not outcome.faults,
        note=f"{outcome.kills} kills and {outcome.pauses} pauses in {outcome.seconds / 60:.1f} min;"
        f" {outcome.calls} calls for {outcome.needed_calls} needed{faults}",
    )


def leases() -> Iterator[Row]:
    seen = measure_leases(QUEUED)
    yield Row(
        what=f"lease of a job at {QUEUED:,} queued, p99",
        toolkit="",
        target="<= 20 ms",
        ours=f"{1000 * seen.p99_s:.1f} ms",
        met=seen.p99_s <= 0.02,
        note=f"median {1000 * seen.p50_s:.1f} ms",
    )


def scaling() -> Iterator[Row]:
    rates = measure_scaling([1, WORKERS])
    share = rates[WORKERS] / (WORKERS * rates[1])
    yield Row(
        what=f"{WORKERS} workers against one, model latency 1 s",
        toolkit="",
        target=f">= 0.9 x {WORKERS}",
        ours=f"{share:.2f} x {WORKERS}",
        met=share >= 0.9,
        note=f"{rates[1]:.2f} and {rates[WORKERS]:.2f} answers/s",
    )
