"""The journal of a run in the database: steps are kept under the job's fence, many in one transaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from app.features.suites.records import Record
from app.jobs.errors import JobSuperseded
from app.storage.database import Database
from app.storage.jobs import holds
from app.storage.records import Fence
from app.storage.suite_steps import StepRow, begin_run, keep_steps, known_records

_MOST_AT_ONCE = 200


class StepJournal:
    """A ``Journal`` of one attempt. A record is kept once its transaction is committed."""

    def __init__(self, database: Database, fence: Fence) -> None:
        self._database = database
        self._fence = fence
        self._waiting: list[tuple[Record, asyncio.Future[None]]] = []
        self._turn = asyncio.Lock()

    async def begin(self, identity: Mapping[str, Any], total: int) -> None:
        """Say what the run is about. What an attempt on other data or terms kept is forgotten.

        Raises:
            JobSuperseded, DatabaseUnavailable
        """
        async with self._database.begin() as connection:
            if not await holds(connection, self._fence):
                raise JobSuperseded(self._fence.job_id)
            written = json.dumps(identity, sort_keys=True)
            await begin_run(connection, self._fence.job_id, identity=written, total=total)

    async def known(self) -> Mapping[str, dict[str, Any]]:
        async with self._database.begin() as connection:
            records = await known_records(connection, self._fence.job_id)
        return {record["id"]: record for record in records}

    async def keep(self, record: Record) -> None:
        """Raises JobSuperseded, DatabaseUnavailable."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((record, kept))
        # Whoever comes while a transaction is under way goes with the next one, all together.
        async with self._turn:
            if not kept.done():
                await self._write()
        await kept

    async def _write(self) -> None:
        batch, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
        try:
            rows = await asyncio.to_thread(lambda: [StepRow.of(record) for record, _ in batch])
            async with self._database.begin() as connection:
                if not await holds(connection, self._fence):
                    raise JobSuperseded(self._fence.job_id)
                await keep_steps(connection, self._fence.job_id, rows)
        except BaseException:
            # Each of the others tries for itself: it may be that only we were stopped.
            self._waiting = [(record, kept) for record, kept in batch if not kept.done()] + self._waiting
            raise
        for _, kept in batch:
            if not kept.done():
                kept.set_result(None)
