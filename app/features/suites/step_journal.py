"""Journal of a run in the database. Records are written with the fencing token of the job, many per transaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from app.features.suites.records import Record
from app.jobs.errors import JobSuperseded
from app.storage.database import Database
from app.storage.jobs import is_fence_valid
from app.storage.records import Fence
from app.storage.suite_steps import StepRow, begin_run, keep_steps, known_records

_MAX_BATCH = 200


class StepJournal:
    """``Journal`` of one attempt. A record is stored when its transaction is committed."""

    def __init__(self, database: Database, fence: Fence) -> None:
        self._database = database
        self._fence = fence
        self._waiting: list[tuple[Record, asyncio.Future[None]]] = []
        self._lock = asyncio.Lock()

    async def begin(self, identity: Mapping[str, Any], total: int) -> None:
        """Register the run. Steps of an attempt with another identity are deleted.

        Raises:
            JobSuperseded: another attempt of the job has taken over.
            DatabaseUnavailable: the database cannot be reached.
        """
        async with self._database.begin() as connection:
            if not await is_fence_valid(connection, self._fence):
                raise JobSuperseded(self._fence.job_id)
            identity_json = json.dumps(identity, sort_keys=True)
            await begin_run(connection, self._fence.job_id, identity=identity_json, total=total)

    async def known(self) -> Mapping[str, dict[str, Any]]:
        async with self._database.begin() as connection:
            records = await known_records(connection, self._fence.job_id)
        return {record["id"]: record for record in records}

    async def keep(self, record: Record) -> None:
        """Store a record. Raises JobSuperseded, DatabaseUnavailable."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, stored))
        # Group commit: records that arrive during a transaction are written together by the next one.
        async with self._lock:
            if not stored.done():
                await self._write()
        await stored

    async def _write(self) -> None:
        batch, self._waiting = self._waiting[:_MAX_BATCH], self._waiting[_MAX_BATCH:]
        try:
            rows = await asyncio.to_thread(lambda: [StepRow.of(record) for record, _ in batch])
            async with self._database.begin() as connection:
                if not await is_fence_valid(connection, self._fence):
                    raise JobSuperseded(self._fence.job_id)
                await keep_steps(connection, self._fence.job_id, rows)
        except BaseException:
            # Put the batch back for the other waiters: possibly only this task was cancelled.
            self._waiting = [(record, stored) for record, stored in batch if not stored.done()] + self._waiting
            raise
        for _, stored in batch:
            if not stored.done():
                stored.set_result(None)
