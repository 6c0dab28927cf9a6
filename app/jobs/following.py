"""Periodic writer of a running job's progress. It also detects that the job was cancelled or taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

import structlog

from app.background import cancellable_sleep
from app.jobs.errors import JobSuperseded
from app.progress import NO_PROGRESS, Progress
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.jobs import write_progress
from app.storage.records import Fence

T = TypeVar("T")
_INTERVAL_S = 0.25
_CHECK_S = 5.0
_log = structlog.get_logger(__name__)


class ProgressWriter:
    """Progress writer for one job attempt. ``report`` is cheap; the database is written every ``interval_s``."""

    def __init__(
        self,
        database: Database,
        fence: Fence,
        *,
        interval_s: float = _INTERVAL_S,
        limiter: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        """``limiter`` is entered for each write, to limit concurrent database access."""
        self._limiter = limiter or nullcontext()
        self._database = database
        self._fence = fence
        self._interval_s = interval_s
        self.latest = NO_PROGRESS
        """The last progress reported."""
        self._reported = asyncio.Event()

    def report(self, progress: Progress) -> None:
        self.latest = progress
        self._reported.set()

    async def run_with(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` and write its progress until it ends.

        Raises:
            JobSuperseded: The job was cancelled or taken over. ``work`` has been cancelled.
        """
        working = asyncio.ensure_future(work)
        writing = asyncio.ensure_future(self._write())
        both: set[asyncio.Future[Any]] = {working, writing}
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if working not in done:
                writing.result()
            return working.result()
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both)

    async def _write(self) -> None:
        """Write progress until cancelled. Without progress, check the fencing token every ``_CHECK_S``."""
        while True:
            try:
                async with asyncio.timeout(_CHECK_S):
                    await self._reported.wait()
            except TimeoutError:
                pass
            async with self._limiter:
                self._reported.clear()
                await self._write_once(self.latest)
            await cancellable_sleep(self._interval_s)

    async def _write_once(self, progress: Progress) -> None:
        try:
            async with self._database.begin() as connection:
                held = await write_progress(connection, self._fence, progress)
        except DatabaseUnavailable as error:
            # Progress is optional. Only writes of the final state are retried.
            _log.warning("progress not written", job_id=self._fence.job_id, detail=str(error))
            return
        if not held:
            raise JobSuperseded(self._fence.job_id)
