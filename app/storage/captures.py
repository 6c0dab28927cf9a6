"""The rows of captures: one for each attempt to observe a page, never changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import ColumnElement, and_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.storable import storable
from app.storage.tables import captures, result_pages, results
from cache.capture import EVIDENCE_OUTCOMES, Capture
from cache.errors import IndexFailed
from cache.record import capture_from_json, capture_to_json

_EVIDENCE = tuple(sorted(EVIDENCE_OUTCOMES))


class PostgresIndex:
    """The ``cache.store.CaptureIndex`` of the service: every worker sees what any of them captured."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, key: str) -> Capture | None:
        query = (
            select(captures.c.record)
            .where(captures.c.key_sha256 == _digest(key))
            .order_by(captures.c.outcome.in_(_EVIDENCE).desc(), captures.c.captured_at.desc(), captures.c.id.desc())
            .limit(1)
        )
        async with self._transaction() as connection:
            record = (await connection.execute(query)).scalar_one_or_none()
        return None if record is None else _capture(record)

    async def get(self, capture_id: str) -> Capture | None:
        async with self._transaction() as connection:
            query = select(captures.c.record).where(captures.c.id == capture_id)
            record = (await connection.execute(query)).scalar_one_or_none()
        return None if record is None else _capture(record)

    async def record(self, capture: Capture) -> None:
        row = {
            "id": capture.id,
            "key_sha256": _digest(capture.key),
            "url": storable(capture.url),
            "outcome": capture.outcome,
            "record": storable(json.dumps(capture_to_json(capture), ensure_ascii=False)),
            "captured_at": capture.captured_at,
        }
        async with self._transaction() as connection:
            await connection.execute(insert(captures).values(row))

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._database.begin() as connection:
                yield connection
        except DatabaseUnavailable as error:
            raise IndexFailed(str(error)) from error


async def list_captures(
    connection: AsyncConnection,
    *,
    limit: int,
    before: str | None = None,
    agent: str | None = None,
    task_id: str | None = None,
    problem: bool | None = None,
    outcome: str | None = None,
) -> Sequence[Capture]:
    """Newest first. ``agent`` and ``task_id`` keep the pages that results of theirs were judged by."""
    filters: list[ColumnElement[bool]] = []
    if before is not None:
        filters.append(captures.c.id < before)
    if problem is not None:
        found = captures.c.outcome.in_(_EVIDENCE)
        filters.append(~found if problem else found)
    if outcome is not None:
        filters.append(captures.c.outcome == outcome)
    if agent is not None or task_id is not None:
        used = select(result_pages.c.capture_id).join(results, results.c.id == result_pages.c.result_id)
        if agent is not None:
            used = used.where(results.c.agent == agent)
        if task_id is not None:
            used = used.where(results.c.task_id == task_id)
        filters.append(captures.c.id.in_(used))
    query = select(captures.c.record).where(and_(True, *filters)).order_by(captures.c.id.desc()).limit(limit)
    return [_capture(record) for record in (await connection.execute(query)).scalars()]


def _capture(record: str) -> Capture:
    return capture_from_json(json.loads(record))


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
