"""Job queue on procrastinate, in the service's database.

A queue entry holds only a job ID. It is inserted in the caller's transaction and deleted when it is done. The state of
the job is in its own row.

The number of queued jobs is limited. The queued jobs are counted at most once per second. Jobs that this process
accepts in between are added to the count. Several processes together can exceed the limit by the jobs they accept
within that second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import procrastinate
import psycopg
import structlog
from procrastinate import exceptions
from procrastinate.jobs import Status
from procrastinate.types import JSONDict
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.async_tools import cancellable_sleep
from app.jobs.errors import QueueFull
from app.storage.database import Database
from app.storage.direct_pool import DirectConnection
from app.storage.errors import DatabaseUnavailable

QUEUE = "answers"
TASK = "assay.judge_answer"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Worker parameters: ``concurrency`` is a number of jobs, the times are seconds.

    ``listens``: take new jobs at once, and not only every ``poll_s``. PostgreSQL wakes every process that listens for
    each change of any job, so that the cost of an answer grows with the number of these processes.
    """

    concurrency: int
    heartbeat_s: float
    stalled_s: float
    drain_s: float
    poll_s: float = 1.0
    listens: bool = True


class JobQueue:
    """Job queue. The methods that take a connection also work outside ``open``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector())
        self._running: dict[int, int] = {}
        """The entries that this process is running, with the ID of their worker."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[JobQueue]:
        """Let the queue use the database during the block."""
        async with self._app.open_async(self._database.direct.pool):
            yield self

    async def enqueue(self, connection: AsyncConnection, job_ids: Sequence[str], *, priority: int = 0) -> list[int]:
        """Insert an entry for each job in the caller's transaction, and return the entry IDs.

        Entries with a higher ``priority`` run first.
        """
        deferrer = self._app.configure_task(TASK, queue=QUEUE, priority=priority, connection=await _driver(connection))
        arguments: list[JSONDict] = [{"job_id": job_id} for job_id in job_ids]
        with _database_errors():
            return await deferrer.batch_defer_async(*arguments)

    async def cancel_entries(self, connection: AsyncConnection, queue_ids: Sequence[int]) -> None:
        """Delete waiting entries, and cancel running ones, in the caller's transaction."""
        query = text(
            "SELECT procrastinate_cancel_job_v1(entry, true, true) FROM unnest(CAST(:ids AS bigint[])) AS entry"
        )
        await connection.execute(query, {"ids": list(queue_ids)})

    async def stalled(self, seconds: float) -> list[int]:
        """Return the entries whose worker has sent no heartbeat for ``seconds``.

        Entries that this process is running are never among them. After the process was suspended, its own heartbeat
        is late, too.
        """
        with _database_errors():
            jobs = await self._app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=seconds)
        return [entry.id for entry in jobs if entry.id is not None and entry.id not in self._running]

    async def close(self, queue_id: int) -> None:
        """Delete the entry of a lost worker."""
        with _database_errors():
            await self._app.job_manager.finish_job_by_id_async(queue_id, status=Status.FAILED, delete_job=True)

    async def mark_workers_lost(self) -> None:
        """Mark all registered workers as lost. Only safe if no other process uses the database."""
        with _database_errors():
            await self._app.job_manager.prune_stalled_workers(0)

    async def run_worker(self, handle: Callable[[str, int], Awaitable[None]], options: WorkerOptions) -> None:
        """Call ``handle(job_id, queue_id)`` for each entry, until cancelled or the database is lost.

        On cancellation, take no new entries, wait ``drain_s`` for the running ones and then cancel them. The worker
        sends heartbeats until the last one has ended.
        """

        async def judge_answer(context: procrastinate.JobContext, *, job_id: str) -> None:
            if context.job.id is None or context.job.worker_id is None:
                raise exceptions.TaskNotFound
            self._running[context.job.id] = context.job.worker_id
            try:
                await handle(job_id, context.job.id)
            finally:
                del self._running[context.job.id]

        self._app.tasks.pop(TASK, None)
        self._app.task(name=TASK, queue=QUEUE, pass_context=True)(judge_answer)
        working = self._app.run_worker_async(
            queues=[QUEUE],
            concurrency=options.concurrency,
            install_signal_handlers=False,
            delete_jobs="always",
            update_heartbeat_interval=options.heartbeat_s,
            stalled_worker_timeout=options.stalled_s,
            shutdown_graceful_timeout=options.drain_s,
            fetch_job_polling_interval=options.poll_s,
            abort_job_polling_interval=options.poll_s,
            listen_notify=options.listens,
        )
        heartbeats = asyncio.create_task(self._send_heartbeats(options.heartbeat_s), name="heartbeats")
        try:
            with _database_errors():
                await run_cancellable(working, is_draining=lambda: bool(self._running))
        finally:
            heartbeats.cancel()
            await asyncio.wait({heartbeats})

    async def _send_heartbeats(self, interval_s: float) -> None:
        """Send heartbeats for the workers of running entries until cancelled.

        Procrastinate's worker cancels its own heartbeat as soon as it stops, also after a lost connection, and then
        waits for its entries. Other workers would take them over.
        """
        while True:
            await cancellable_sleep(interval_s)
            try:
                with _database_errors():
                    for worker_id in set(self._running.values()):
                        await self._app.job_manager.update_heartbeat(worker_id)
            except DatabaseUnavailable as error:
                _log.warning("heartbeat not sent", detail=str(error))


async def _driver(connection: AsyncConnection) -> Any:
    """Return the psycopg connection of a SQLAlchemy connection. Both then write in the same transaction."""
    return (await connection.get_raw_connection()).driver_connection


@contextmanager
def _database_errors() -> Iterator[None]:
    try:
        yield
    except (exceptions.ConnectorException, psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise DatabaseUnavailable(f"The job queue is unavailable: {error}") from error


async def run_cancellable(
    working: Coroutine[Any, Any, None], *, is_draining: Callable[[], bool], recancel_interval_s: float = 1.0
) -> None:
    """Run procrastinate's worker so that cancelling this call always stops it.

    In Python 3.11 ``asyncio.wait_for`` drops a cancellation that arrives together with its result. The worker can lose
    a cancellation in this way while it gets a connection during startup. It is therefore cancelled again every
    ``recancel_interval_s`` seconds, unless ``is_draining`` returns True: then it has started and waits for its running
    entries. A second cancellation would interrupt them.
    """
    running = asyncio.create_task(working, name="queue worker")
    try:
        await asyncio.wait({running})
    except asyncio.CancelledError:
        has_work = is_draining()
        running.cancel()
        while not running.done():
            try:
                await asyncio.wait({running}, timeout=None if has_work else recancel_interval_s)
            except asyncio.CancelledError:
                running.cancel()  # second cancellation of this call: do not wait for running entries
            else:
                if not has_work:
                    running.cancel()
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error from None
        raise
    await running


_INTERVAL_S = 1.0
_ANALYZE_AFTER_JOBS = 1000


class QueueLimit:
    """Queue limit, checked per process."""

    def __init__(self, max_queued: int) -> None:
        """``max_queued``: maximum number of queued jobs; 0: no limit."""
        self._max_queued = max_queued
        self._waiting = 0
        self._counted_at = float("-inf")
        self._since_analyze = 0

    async def admit(self, connection: DirectConnection, new: int) -> None:
        """Check that ``new`` jobs fit into the queue, and count them.

        Raises:
            QueueFull: The limit would be exceeded.
        """
        if self._max_queued:
            if time.monotonic() - self._counted_at > _INTERVAL_S:
                self._counted_at = time.monotonic()
                counted = await connection.execute(_COUNT, [self._max_queued])
                row = await counted.fetchone()
                self._waiting = 0 if row is None else int(row[0])
            if self._waiting + new > self._max_queued:
                raise QueueFull(f"{self._waiting} jobs are queued, the limit is {self._max_queued}: retry later")
            self._waiting += new
        self._since_analyze += new

    async def analyze_periodically(self, database: Database) -> None:
        """Run ``ANALYZE`` on the queue table after bulk inserts, until cancelled.

        With outdated statistics the planner makes fetching from a long queue slow.
        """
        while True:
            await cancellable_sleep(_INTERVAL_S)
            if self._since_analyze < _ANALYZE_AFTER_JOBS:
                continue
            self._since_analyze = 0
            try:
                async with database.pooled_connection() as connection:
                    await connection.execute("ANALYZE procrastinate_jobs")
            except DatabaseUnavailable as error:
                _log.warning("queue statistics not updated", detail=str(error))


_COUNT = "SELECT count(*) FROM (SELECT FROM jobs WHERE status = 'queued' LIMIT %s) waiting"
