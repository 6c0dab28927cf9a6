"""How much may wait: a queue without an end is a promise that nobody can keep.

Waiting jobs are counted once a second at most, and what this process took in since is added. Several processes may
together go beyond the limit by what they take in within that second.
"""

from __future__ import annotations

import time

import structlog

from app.background import until_next_round
from app.jobs.errors import QueueFull
from app.storage.database import Database
from app.storage.direct import DirectConnection
from app.storage.errors import DatabaseUnavailable

_COUNT_AGAIN_S = 1.0
_STATISTICS_AFTER = 1000
_log = structlog.get_logger(__name__)


class QueueRoom:
    """The room in the queue, as one process sees it."""

    def __init__(self, most: int) -> None:
        """``most``: how many jobs may wait; 0: any number."""
        self._most = most
        self._waiting = 0
        self._counted_at = float("-inf")
        self._since_statistics = 0

    async def admit(self, connection: DirectConnection, new: int) -> None:
        """Make sure that there is room for ``new`` jobs, and take it.

        Raises:
            QueueFull
        """
        if self._most:
            if time.monotonic() - self._counted_at > _COUNT_AGAIN_S:
                self._counted_at = time.monotonic()
                counted = await connection.execute(_COUNT, [self._most])
                row = await counted.fetchone()
                self._waiting = 0 if row is None else int(row[0])
            if self._waiting + new > self._most:
                raise QueueFull(f"{self._waiting} jobs are waiting, and no more than {self._most} may")
            self._waiting += new
        self._since_statistics += new

    async def keep_statistics(self, database: Database) -> None:
        """Until cancelled, tell the planner how long the queue has become: without that, fetching from it turns slow
        when much comes in at once."""
        while True:
            await until_next_round(_COUNT_AGAIN_S)
            if self._since_statistics < _STATISTICS_AFTER:
                continue
            self._since_statistics = 0
            try:
                async with database.quickly() as connection:
                    await connection.execute("ANALYZE procrastinate_jobs")
            except DatabaseUnavailable as error:
                _log.warning("queue statistics not kept", detail=str(error))


_COUNT = "SELECT count(*) FROM (SELECT FROM jobs WHERE status = 'queued' LIMIT %s) waiting"
