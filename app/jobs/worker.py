"""Worker: runs queued jobs, takes over jobs of lost workers and resumes paused jobs."""

from __future__ import annotations

import asyncio
import random

import structlog

from app.async_tools import cancellable_sleep
from app.jobs.execution import JobExecutor, Takeover
from app.jobs.pausing import JobPauser
from app.jobs.queue import JobQueue, WorkerOptions
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable

_RESTART_DELAY_S = 1.0
_log = structlog.get_logger(__name__)


class Worker:
    """Worker that runs jobs concurrently. ``run`` drains when it is cancelled."""

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        execution: JobExecutor,
        takeover: Takeover,
        pausing: JobPauser,
        options: WorkerOptions,
    ) -> None:
        self._database = database
        self._queue = queue
        self._execution = execution
        self._takeover = takeover
        self._pausing = pausing
        self._options = options
        self.working = False
        """Whether the worker is accepting jobs."""
        self._running: asyncio.Task[None] | None = None

    async def drain(self) -> None:
        """Stop accepting jobs. Wait for the running ones, or return them to the queue after ``drain_s``."""
        if self._running is not None:
            self._running.cancel()
            try:
                await asyncio.wait({self._running})
            except asyncio.CancelledError:  # second cancellation: do not wait any longer
                self._execution.cancel_all()
                raise

    async def run(self) -> None:
        self._running = asyncio.current_task()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._work(), name="worker")
            tasks.create_task(self._sweep(), name="sweep")

    async def _sweep(self) -> None:
        """Take over jobs of lost workers and resume paused jobs until cancelled."""
        while True:
            try:
                await self._takeover.sweep()
                await self._pausing.resume_ready_jobs()
            except DatabaseUnavailable as error:
                _log.warning("sweep failed", detail=str(error))
            # Random, so that the workers do not sweep at the same time.
            await cancellable_sleep(self._takeover.interval_s * random.uniform(0.9, 1.1))  # noqa: S311

    async def _work(self) -> None:
        exclusive = self._database.exclusive
        while True:
            try:
                if exclusive:
                    # No other process used the database when it was opened, so entries marked as running are orphaned.
                    await self._queue.mark_workers_lost()
                    await self._takeover.sweep()
                    exclusive = False
                self.working = True
                await self._queue.run_worker(self._execution.run, self._options)
                _log.warning("worker lost the database connection, restarting")
            except DatabaseUnavailable as error:
                _log.warning("worker cannot reach the database", detail=str(error))
            finally:
                self.working = False
            await cancellable_sleep(_RESTART_DELAY_S)
