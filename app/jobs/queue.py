"""The queue behind the jobs: procrastinate on our database, one short-lived entry per attempt to have a job done.

Entries only carry a job's id. They are made inside the caller's transaction, and deleted when they are
through; what became of the job stands in its own row.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import procrastinate
import psycopg
from procrastinate import exceptions
from procrastinate.jobs import Status
from procrastinate.types import JSONDict
from sqlalchemy.ext.asyncio import AsyncConnection

from app.jobs.stoppable import stoppable
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable

QUEUE = "answers"
TASK = "assay.judge_answer"
_POOL_SIZE = 8
_CONNECT_TIMEOUT_S = 5
_POOL_WAIT_S = 5.0
_RECONNECT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPace:
    """How a worker runs: ``concurrency`` in jobs, the rest in seconds."""

    concurrency: int
    heartbeat_s: float
    stalled_s: float
    drain_s: float
    poll_s: float = 1.0


class JobQueue:
    """Makes, withdraws and works off entries. ``opened`` it can do all; before that only what takes a connection."""

    def __init__(self, database: Database) -> None:
        connector = procrastinate.PsycopgConnector(
            conninfo=database.url,
            min_size=1,
            max_size=_POOL_SIZE,
            timeout=_POOL_WAIT_S,
            # Give a lost server up soon and look again when something is wanted, rather than ever more rarely.
            reconnect_timeout=_RECONNECT_S,
            kwargs={"connect_timeout": _CONNECT_TIMEOUT_S},
        )
        self._app = procrastinate.App(connector=connector)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[JobQueue]:
        """Hold connections of its own during the block."""
        with _translated():
            await self._app.open_async()
        try:
            yield self
        finally:
            await self._app.close_async()

    async def enqueue(self, connection: AsyncConnection, job_ids: Sequence[str], *, priority: int = 0) -> list[int]:
        """Make an entry for each job; they exist once the caller's transaction is committed. Higher priority first."""
        deferrer = self._app.configure_task(TASK, queue=QUEUE, priority=priority, connection=await _driver(connection))
        arguments: list[JSONDict] = [{"job_id": job_id} for job_id in job_ids]
        with _translated():
            return await deferrer.batch_defer_async(*arguments)

    async def withdraw(self, connection: AsyncConnection, queue_id: int) -> None:
        """Drop a waiting entry, interrupt a running one; with the caller's transaction."""
        with _translated():
            await self._app.job_manager.cancel_job_by_id_async(
                queue_id, abort=True, delete_job=True, connection=await _driver(connection)
            )

    async def stalled(self, seconds: float) -> list[int]:
        """Entries whose worker has not been heard of for so long."""
        with _translated():
            found = await self._app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=seconds)
        return [entry.id for entry in found if entry.id is not None]

    async def close(self, queue_id: int) -> None:
        """Remove an entry that nobody works on any more."""
        with _translated():
            await self._app.job_manager.finish_job_by_id_async(queue_id, status=Status.FAILED, delete_job=True)

    async def forget_workers(self) -> None:
        """Declare every worker known so far dead. Only for the one process that has the database to itself."""
        with _translated():
            await self._app.job_manager.prune_stalled_workers(0)

    async def work(self, handle: Callable[[str, int], Awaitable[None]], pace: WorkerPace) -> None:
        """Hand (job id, queue id) of every entry to ``handle``, until cancelled or the database is lost.

        Cancelled, it takes no new entry, waits ``drain_s`` for what is running and then interrupts it.
        """

        under_way: set[int] = set()

        async def judge_answer(context: procrastinate.JobContext, *, job_id: str) -> None:
            if context.job.id is None:
                raise exceptions.TaskNotFound
            under_way.add(context.job.id)
            try:
                await handle(job_id, context.job.id)
            finally:
                under_way.discard(context.job.id)

        self._app.tasks.pop(TASK, None)
        self._app.task(name=TASK, queue=QUEUE, pass_context=True)(judge_answer)
        working = self._app.run_worker_async(
            queues=[QUEUE],
            concurrency=pace.concurrency,
            install_signal_handlers=False,
            delete_jobs="always",
            update_heartbeat_interval=pace.heartbeat_s,
            stalled_worker_timeout=pace.stalled_s,
            shutdown_graceful_timeout=pace.drain_s,
            fetch_job_polling_interval=pace.poll_s,
            abort_job_polling_interval=pace.poll_s,
        )
        with _translated():
            await stoppable(working, drains=lambda: bool(under_way))


async def _driver(connection: AsyncConnection) -> Any:
    """The psycopg connection below a SQLAlchemy one, so that both write in one transaction."""
    return (await connection.get_raw_connection()).driver_connection


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (exceptions.ConnectorException, psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise DatabaseUnavailable(f"the job queue does not answer: {error}") from error
