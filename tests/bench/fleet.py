"""Load of 200 workers on one PostgreSQL: what an answer and an idle worker cost the database.

Each worker is the one of the service, with a registration, heartbeats, sweeps and queue connections of its own. The
workers of a process share what the jobs of a process share: the connection pool, the budget ledger and the runtime. The
model answers at once, pages are fixed, and task files run without isolation, so the workers do everything that reaches
the database as fast as this machine permits. The figures of the database (CPU time, WAL,
connections) do not depend on how fast the workers are; the rate does, because all share the processors.

``python -m tests.bench.fleet WORKERS`` runs one process of simulated workers for ``measure``.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
from sqlalchemy import text

from app.jobs.evaluator import JobEvaluator
from app.jobs.queue import JobQueue
from app.observability.metrics import Metrics, RequestMetrics
from app.service import create_ledger, create_worker, open_service, worker_options
from app.storage.database import Database, connect_database, migrate
from app.storage.embedded import EmbeddedPostgres
from tests.bench.model import ROOT
from tests.bench.row import Row
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.services import Rig
from tests.fakes.settings import settings_for_tests
from tests.standin.llm import StandInLLM
from tests.standin.rules import seeded_rule

WORKERS = 200
PROCESSES = 4
JOBS = 2
"""Concurrent answers per worker."""
ANSWERS = 200
IDLE_S = 20.0
STALLED_S = 120.0
"""So many workers on two processors send late heartbeats. With the default, they would take over each other's jobs."""
CONNECTIONS = 60
"""Connections of a process, without those of the queues of its workers."""
TASK = "audit"
CLAIMS = 20
"""Claims of an answer. Each has a page of its own and two votes, about as many as in a long answer."""
PAGE = "The record says that every entry of the register was confirmed on the day it was made. " * 60
MAX_CONNECTIONS = 4000
JUDGE = f"""
from judges.registry import judge

@judge(task={TASK!r}, description="Check the register.")
async def audit(ctx):
    who = ctx.answer.text.strip()
    for number in range({CLAIMS}):
        page = f"https://example.org/{{who.replace(' ', '-')}}/{{number}}"
        ctx.verify(f"claim_{{number}}", f"{{who}} made entry {{number}}", sources=[page])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetLoad:
    """Load on the database. ``idle_cpu_share`` is CPU time per second of all idle workers together."""

    workers: int
    answers: int
    wall_s: float
    cpu_s_per_answer: float
    wal_bytes_per_answer: float
    stored_bytes_per_answer: float
    transactions_per_answer: float
    most_connections: int
    idle_connections: int
    idle_cpu_share: float
    idle_transactions_per_s: float


def measure() -> FleetLoad:
    """Run the workers on a private server: first idle, then with ``ANSWERS`` answers.

    Raises:
        RuntimeError: A worker process ended, or a job failed.
    """
    return asyncio.run(_measure())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Counters of the server at one time. ``cpu_s`` includes the processes of closed connections."""

    time_s: float
    cpu_s: float
    wal_bytes: int
    size_bytes: int
    transactions: int
    connections: int


class _Server:
    """The server's counters, read over one connection of its own."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        postmaster = psutil.Process(connection.info.backend_pid).parent()
        assert postmaster is not None
        self._postmaster = postmaster

    async def read(self) -> _Reading:
        row = await (
            await self._connection.execute(
                "SELECT pg_current_wal_lsn() - '0/0', pg_database_size(current_database()),"
                " (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()),"
                " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
            )
        ).fetchone()
        assert row is not None
        return _Reading(
            time_s=time.monotonic(),
            cpu_s=self._cpu_s(),
            wal_bytes=int(row[0]),
            size_bytes=int(row[1]),
            transactions=int(row[2]),
            connections=int(row[3]),
        )

    def _cpu_s(self) -> float:
        own = self._postmaster.cpu_times()
        used = own.user + own.system + own.children_user + own.children_system
        for child in self._postmaster.children():
            try:
                times = child.cpu_times()
            except psutil.NoSuchProcess:  # it ended between the two calls; its time is now among the children's
                continue
            used += times.user + times.system
        return used


async def _measure() -> FleetLoad:
    async with _database() as (database, folder), StandInLLM(rule=seeded_rule(7), delay_s=0.0) as model:
        (folder / "judges").mkdir()
        (folder / "judges" / "audit.py").write_text(JUDGE)
        options = {"judges": str(folder / "judges"), "database_url": database.url, "model_url": model.base_url}
        async with (
            _fleet(options) as processes,
            Rig.opened(database) as rig,
            await psycopg.AsyncConnection.connect(database.url, autocommit=True) as connection,
        ):
            server = _Server(connection)
            await _wait(database, processes, "SELECT count(*) FROM procrastinate_workers", WORKERS)
            before_idle = await server.read()
            await asyncio.sleep(IDLE_S)
            idle = await server.read()
            for nth in range(ANSWERS):
                await rig.submit(f"Runner {nth}", task_id=TASK)
            most = 0
            while await _count(database, _ENDED) < ANSWERS:
                _check(processes)
                most = max(most, (await server.read()).connections)
                await asyncio.sleep(0.5)
            loaded = await server.read()
        failed = await _count(database, "SELECT count(*) FROM jobs WHERE status <> 'succeeded'")
        if failed:
            raise RuntimeError(f"{failed} of {ANSWERS} jobs did not succeed")
    idle_s = idle.time_s - before_idle.time_s
    idle_cpu_share = (idle.cpu_s - before_idle.cpu_s) / idle_s
    wall_s = loaded.time_s - idle.time_s
    return FleetLoad(
        workers=WORKERS,
        answers=ANSWERS,
        wall_s=wall_s,
        cpu_s_per_answer=(loaded.cpu_s - idle.cpu_s - idle_cpu_share * wall_s) / ANSWERS,
        wal_bytes_per_answer=(loaded.wal_bytes - idle.wal_bytes) / ANSWERS,
        stored_bytes_per_answer=(loaded.size_bytes - idle.size_bytes) / ANSWERS,
        transactions_per_answer=(loaded.transactions - idle.transactions) / ANSWERS,
        most_connections=most,
        idle_connections=idle.connections,
        idle_cpu_share=idle_cpu_share,
        idle_transactions_per_s=(idle.transactions - before_idle.transactions) / idle_s,
    )


@asynccontextmanager
async def _database() -> AsyncIterator[tuple[Database, Path]]:
    folder = Path(tempfile.mkdtemp(prefix="assay-bench-"))
    await asyncio.to_thread(folder.chmod, 0o755)  # the database account must be able to enter it
    server = EmbeddedPostgres(folder)
    try:
        url = await asyncio.to_thread(server.start)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(f"ALTER SYSTEM SET max_connections = {MAX_CONNECTIONS}")
        await asyncio.to_thread(server.stop)  # the setting takes effect at the next start
        url = await asyncio.to_thread(server.start)
        async with connect_database(url) as database:
            async with database.begin() as connection:
                await migrate(connection)
            yield database, folder
    finally:
        await asyncio.to_thread(server.stop)
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _fleet(options: dict[str, str]) -> AsyncIterator[Sequence[asyncio.subprocess.Process]]:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.fleet", json.dumps({**options, "workers": WORKERS // PROCESSES}),
            cwd=ROOT, stdout=asyncio.subprocess.DEVNULL,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    try:
        yield processes
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*(process.wait() for process in processes))


def _check(processes: Sequence[asyncio.subprocess.Process]) -> None:
    ended = [process.returncode for process in processes if process.returncode is not None]
    if ended:
        raise RuntimeError(f"{len(ended)} worker processes ended with {ended}")


async def _wait(database: Database, processes: Sequence[asyncio.subprocess.Process], query: str, number: int) -> None:
    while await _count(database, query) < number:
        _check(processes)
        await asyncio.sleep(0.2)


_ENDED = "SELECT count(*) FROM jobs WHERE status IN ('succeeded', 'failed', 'cancelled')"


async def _count(database: Database, query: str) -> int:
    async with database.begin() as connection:
        return int((await connection.execute(text(query))).scalar_one())


class _EveryPage(dict[str, str]):
    """Pages by URL: every URL has the same text and an address of its own in it."""

    def get(self, url: str, default: Any = None) -> str:
        return f"{url}\n{PAGE}"


async def _work(options: dict[str, Any]) -> None:
    """Run simulated workers until killed."""
    settings = settings_for_tests(
        data_dir=tempfile.gettempdir(),
        database_url=options["database_url"],
        model="openai/gpt-4.1",
        openai_base_url=options["model_url"],
        database_connections=CONNECTIONS,
        stalled_s=STALLED_S,
    )
    runtime = scripted_runtime(Path(options["judges"]), _EveryPage({"": ""}))
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(
            open_service(settings, concurrency=0, metrics=metrics, listens=False, runtime=runtime)
        )
        database = service.database
        ledger = await stack.enter_async_context(create_ledger(database, settings).running())
        evaluate = JobEvaluator(service.runtime, database, ledger, RequestMetrics(metrics), {})
        working = await stack.enter_async_context(asyncio.TaskGroup())
        pace = worker_options(settings, concurrency=JOBS, listens=False)  # as ``assay serve --worker-only``
        for _ in range(options["workers"]):
            queue = await stack.enter_async_context(JobQueue(database).open())
            worker = create_worker(service.runtime, database, queue, evaluate, metrics, {}, pace)
            working.create_task(worker.run())
        await asyncio.Event().wait()


def fleet() -> Iterator[Row]:
    seen = measure()
    yield Row(
        what=f"database CPU per answer of {CLAIMS} claims on {CLAIMS} pages, {seen.workers} workers",
        toolkit="",
        target="<= 100 ms",
        ours=f"{1000 * seen.cpu_s_per_answer:.0f} ms",
        met=seen.cpu_s_per_answer <= 0.1,
        note=f"{seen.transactions_per_answer:.0f} transactions, {seen.wal_bytes_per_answer / 1000:.0f} KB of WAL and"
        f" {seen.stored_bytes_per_answer / 1000:.0f} KB of rows each; {seen.answers / seen.wall_s:.1f} answers/s with"
        f" all workers on this machine; at most {seen.most_connections} connections",
    )
    yield Row(
        what=f"database CPU of {seen.workers} idle workers",
        toolkit="",
        target="<= 25 % of one processor",
        ours=f"{seen.idle_cpu_share:.0%}",
        met=seen.idle_cpu_share <= 0.25,
        note=f"{seen.idle_transactions_per_s:.0f} transactions/s, {seen.idle_connections} connections",
    )


if __name__ == "__main__":
    asyncio.run(_work(json.loads(sys.argv[1])))
