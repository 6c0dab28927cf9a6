"""A worker: takes queued jobs as long as it lives, and looks after those of workers that died."""

from __future__ import annotations

import asyncio

import structlog

from app.background import until_next_round
from app.jobs.execution import JobExecution
from app.jobs.pausing import Pausing
from app.jobs.queue import JobQueue, WorkerPace
from app.jobs.takeover import Takeover
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable

_PAUSE_S = 1.0
_log = structlog.get_logger(__name__)


class Worker:
    """Runs jobs side by side. ``run`` ends only by being cancelled, and then drains first."""

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        execution: JobExecution,
        takeover: Takeover,
        pausing: Pausing,
        pace: WorkerPace,
    ) -> None:
        self._database = database
        self._queue = queue
        self._execution = execution
        self._takeover = takeover
        self._pausing = pausing
        self._pace = pace
        self.working = False
        """Whether jobs are being taken right now."""
        self._running: asyncio.Task[None] | None = None

    async def drain(self) -> None:
        """Take no more jobs; return when those that run have ended, or were handed back after ``drain_s``."""
        if self._running is not None:
            self._running.cancel()
            try:
                await asyncio.wait({self._running})
            except asyncio.CancelledError:  # told a second time: nothing is waited for any more
                self._execution.interrupt()
                raise

    async def run(self) -> None:
        self._running = asyncio.current_task()
        async with asyncio.TaskGroup() as side_by_side:
            side_by_side.create_task(self._work(), name="worker")
            side_by_side.create_task(self._takeover.run(), name="sweep")
            side_by_side.create_task(self._pausing.run(), name="resume")

    async def _work(self) -> None:
        alone = self._database.exclusive
        while True:
            try:
                if alone:
                    # Nobody else had the database when we opened it, so what is marked as running is abandoned.
                    await self._queue.forget_workers()
                    await self._takeover.sweep()
                    alone = False
                self.working = True
                await self._queue.work(self._execution.run, self._pace)
                _log.warning("worker lost the database, starting again")
            except DatabaseUnavailable as error:
                _log.warning("worker cannot reach the database", detail=str(error))
            finally:
                self.working = False
            await until_next_round(_PAUSE_S)
