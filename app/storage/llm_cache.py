"""Queries for the shared cache of model replies, by request hash.

Reads and inserts use a direct connection and handle many rows per statement. The other functions run inside a
transaction.
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
from judges.llm.response_cache import EVICTION_TARGET, CachedModelReplies, CacheSize

TOUCHED_AFTER_S: Final = 86_400
"""Resolution of the time of last use, which saves a write for most uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRow:
    """Cache row. ``entry`` is ASCII JSON."""

    key: str
    model: str
    entry: str


async def get_entries(database: Database, keys: Sequence[str]) -> Mapping[str, str]:
    """Return the cached entries by key. Keys without an entry are omitted.

    Raises:
        DatabaseUnavailable: The query failed.
    """
    async with database.pooled_connection() as connection:
        try:
            cursor = await connection.execute("SELECT key, entry FROM llm_cache WHERE key = ANY(%s)", [list(keys)])
            return dict(await cursor.fetchall())
        except psycopg.DatabaseError as error:
            raise _unavailable(error) from error


async def add_entries(database: Database, entries: Iterable[CacheRow]) -> None:
    """Store entries. Existing entries are replaced, because they may be damaged.

    The rows are sorted by key to prevent deadlocks between workers.

    Raises:
        DatabaseUnavailable: The statement failed.
    """
    rows = sorted(entries, key=lambda each: each.key)
    query = (
        "INSERT INTO llm_cache (key, model, entry, bytes, used_at)"
        " SELECT key, model, entry, octet_length(entry), clock_timestamp()"
        " FROM unnest(%s::text[], %s::text[], %s::text[]) AS new(key, model, entry)"
        " ON CONFLICT (key) DO UPDATE SET model = excluded.model, entry = excluded.entry, bytes = excluded.bytes,"
        " used_at = excluded.used_at"
    )
    columns = [[row.key for row in rows], [row.model for row in rows], [row.entry for row in rows]]
    async with database.pooled_connection() as connection:
        try:
            await connection.execute(query, columns)
        except psycopg.DatabaseError as error:
            raise _unavailable(error) from error


async def touch_entries(database: Database, keys: Iterable[str]) -> None:
    """Update the time of last use. Skip rows that are locked by another worker.

    Raises:
        DatabaseUnavailable: The statement failed.
    """
    query = (
        "UPDATE llm_cache SET used_at = clock_timestamp() WHERE key IN (SELECT key FROM llm_cache"
        " WHERE key = ANY(%s) AND used_at < clock_timestamp() - make_interval(secs => %s) FOR UPDATE SKIP LOCKED)"
    )
    async with database.pooled_connection() as connection:
        try:
            await connection.execute(query, [list(keys), TOUCHED_AFTER_S])
        except psycopg.DatabaseError as error:
            raise _unavailable(error) from error


async def evict(connection: AsyncConnection, *, max_bytes: int) -> int:
    """Evict the least recently used entries if the cache exceeds ``max_bytes``. Return the number of evicted entries.

    Do nothing if another worker is evicting.
    """
    locked = await connection.execute(text("SELECT pg_try_advisory_xact_lock(hashtext('assay kept replies'))"))
    stored = (await cache_size(connection)).bytes
    if not locked.scalar_one() or stored <= max_bytes:
        return 0
    removed = await connection.execute(
        text(
            "DELETE FROM llm_cache WHERE key IN (SELECT key FROM"
            " (SELECT key, sum(bytes) OVER (ORDER BY used_at, key) - bytes AS before FROM llm_cache) AS aged"
            " WHERE before < :excess)"
        ),
        {"excess": stored - EVICTION_TARGET * max_bytes},
    )
    return removed.rowcount


async def cache_size(connection: AsyncConnection) -> CacheSize:
    """Return the number and the total size of the entries."""
    result = await connection.execute(text("SELECT count(*), coalesce(sum(bytes), 0) FROM llm_cache"))
    entries, size = result.one()
    return CacheSize(int(entries), int(size))


async def cache_size_by_model(connection: AsyncConnection) -> tuple[CachedModelReplies, ...]:
    """Return the size of the cache by model."""
    rows = await connection.execute(
        text(
            "SELECT model, count(*) AS entries, sum(bytes) AS bytes,"
            " extract(epoch FROM min(used_at))::float8 AS oldest, extract(epoch FROM max(used_at))::float8 AS newest"
            " FROM llm_cache GROUP BY model ORDER BY model"
        )
    )
    return tuple(
        CachedModelReplies(
            model=row.model, entries=int(row.entries), bytes=int(row.bytes), oldest=row.oldest, newest=row.newest
        )
        for row in rows
    )


async def clear_cache(
    connection: AsyncConnection, *, model: str | None = None, used_before: datetime | None = None
) -> CacheSize:
    """Remove entries and return their number and size.

    ``model`` and ``used_before`` limit what is removed (None: no limit).
    """
    result = await connection.execute(
        text(
            "WITH removed AS (DELETE FROM llm_cache WHERE (CAST(:model AS text) IS NULL OR model = :model)"
            " AND (CAST(:before AS timestamptz) IS NULL OR used_at < :before) RETURNING bytes)"
            " SELECT count(*), coalesce(sum(bytes), 0) FROM removed"
        ),
        {"model": model, "before": used_before},
    )
    entries, size = result.one()
    return CacheSize(int(entries), int(size))


def _unavailable(error: psycopg.Error) -> DatabaseUnavailable:
    return DatabaseUnavailable(f"Cannot access the cache of model replies: {type(error).__name__}")
