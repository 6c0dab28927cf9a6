"""Limit on the number of queued jobs.

The queued jobs are counted at most once per second. Jobs that this process accepts in between are added to the count.
Several processes together can exceed the limit by the jobs they accept within that second.
"""

from __future__ import annotations

import time

import structlog

from app.async_tools import cancellable_sleep
from app.jobs.errors import QueueFull
from app.storage.database import Database
from app.storage.direct_pool import DirectConnection
from app.storage.errors import DatabaseUnavailable

_INTERVAL_S = 1.0
_ANALYZE_AFTER_JOBS = 1000
_log = structlog.get_logger(__name__)


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
