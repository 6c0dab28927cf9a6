"""The rows of kept replies: what models said, by the hash of the request, for every worker on the database.

Reading and adding are done on a direct connection, many rows in one statement; the rest takes an open transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import psycopg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from judges.llm.response_cache import KEPT_SHARE, ModelReplies, StoreSize

TOUCHED_AFTER_S: Final = 86_400
"""The time of last use is exact to this: not every use is worth a write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEntry:
    """One row. ``entry`` is ASCII."""

    key: str
    model: str
    entry: str


async def entries_of(database: Database, keys: Sequence[str]) -> Mapping[str, str]:
    """The entries under these keys, by key; those that are not there are missing.

    Raises:
        DatabaseUnavailable
    """
    async with database.quickly() as connection:
        try:
            found = await connection.execute("SELECT key, entry FROM kept_replies WHERE key = ANY(%s)", [list(keys)])
            return dict(await found.fetchall())
        except psycopg.DatabaseError as error:
            raise _refused(error) from error


async def add_entries(database: Database, entries: Iterable[KeptEntry]) -> None:
    """Store entries; one that is there already, and may be damaged, is replaced. In one order for everybody.

    Raises:
        DatabaseUnavailable
    """
    rows = sorted(entries, key=lambda each: each.key)
    query = (
        "INSERT INTO kept_replies (key, model, entry, bytes, used_at)"
        " SELECT key, model, entry, octet_length(entry), clock_timestamp()"
        " FROM unnest(%s::text[], %s::text[], %s::text[]) AS new(key, model, entry)"
        " ON CONFLICT (key) DO UPDATE SET model = excluded.model, entry = excluded.entry, bytes = excluded.bytes,"
        " used_at = excluded.used_at"
    )
    columns = [[each.key for each in rows], [each.model for each in rows], [each.entry for each in rows]]
    async with database.quickly() as connection:
        try:
            await connection.execute(query, columns)
        except psycopg.DatabaseError as error:
            raise _refused(error) from error


async def touch_entries(database: Database, keys: Iterable[str]) -> None:
    """Note that these were used; who is just being changed by another is passed over.

    Raises:
        DatabaseUnavailable
    """
    query = (
        "UPDATE kept_replies SET used_at = clock_timestamp() WHERE key IN (SELECT key FROM kept_replies"
        " WHERE key = ANY(%s) AND used_at < clock_timestamp() - make_interval(secs => %s) FOR UPDATE SKIP LOCKED)"
    )
    async with database.quickly() as connection:
        try:
            await connection.execute(query, [list(keys), TOUCHED_AFTER_S])
        except psycopg.DatabaseError as error:
            raise _refused(error) from error


async def make_room(connection: AsyncConnection, *, max_bytes: int) -> int:
    """Remove the least recently used beyond ``max_bytes``, unless another is at it; returns how many went."""
    mine = await connection.execute(text("SELECT pg_try_advisory_xact_lock(hashtext('assay kept replies'))"))
    stored = (await kept_size(connection)).bytes
    if not mine.scalar_one() or stored <= max_bytes:
        return 0
    gone = await connection.execute(
        text(
            "DELETE FROM kept_replies WHERE key IN (SELECT key FROM"
            " (SELECT key, sum(bytes) OVER (ORDER BY used_at, key) - bytes AS before FROM kept_replies) AS aged"
            " WHERE before < :excess)"
        ),
        {"excess": stored - KEPT_SHARE * max_bytes},
    )
    return gone.rowcount


async def kept_size(connection: AsyncConnection) -> StoreSize:
    """How much is stored."""
    found = await connection.execute(text("SELECT count(*), coalesce(sum(bytes), 0) FROM kept_replies"))
    entries, size = found.one()
    return StoreSize(int(entries), int(size))


async def kept_by_model(connection: AsyncConnection) -> tuple[ModelReplies, ...]:
    """What is stored, by the name of the model that wrote it."""
    found = await connection.execute(
        text(
            "SELECT model, count(*) AS entries, sum(bytes) AS bytes,"
            " extract(epoch FROM min(used_at))::float8 AS oldest, extract(epoch FROM max(used_at))::float8 AS newest"
            " FROM kept_replies GROUP BY model ORDER BY model"
        )
    )
    return tuple(
        ModelReplies(
            model=row.model, entries=int(row.entries), bytes=int(row.bytes), oldest=row.oldest, newest=row.newest
        )
        for row in found
    )


async def clear_kept(
    connection: AsyncConnection, *, model: str | None = None, used_before: datetime | None = None
) -> StoreSize:
    """Remove what was written by ``model`` and not used since ``used_before`` (None: whatever it is).

    Returns what was removed.
    """
    found = await connection.execute(
        text(
            "WITH gone AS (DELETE FROM kept_replies WHERE (CAST(:model AS text) IS NULL OR model = :model)"
            " AND (CAST(:before AS timestamptz) IS NULL OR used_at < :before) RETURNING bytes)"
            " SELECT count(*), coalesce(sum(bytes), 0) FROM gone"
        ),
        {"model": model, "before": used_before},
    )
    entries, size = found.one()
    return StoreSize(int(entries), int(size))


def _refused(error: psycopg.Error) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"kept replies: {type(error).__name__}")
