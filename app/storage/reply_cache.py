"""Reply cache in the database, for workers on several machines.

A failure here costs at most one more model request, and never changes a verdict. Lookups that arrive during a query
share the next query. Replies are written in the background, many per statement.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final, Literal, TypeAlias

import psycopg
import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.async_tools import cancellable_sleep
from app.storage.database import Database
from app.storage.direct_pool import DirectConnection
from app.storage.errors import DatabaseUnavailable
from app.storage.records import storable_text
from judges.llm.cached import (
    EVICTION_TARGET,
    CacheSize,
    parse_entry,
    to_entry,
)
from judges.llm.client import LLMReply, StoredReply

Event: TypeAlias = Literal["found", "missing", "damaged", "stored", "lost", "failed"]
_Lookup: TypeAlias = asyncio.Future[StoredReply | None]

MAX_WAITING: Final = 2_000
"""Maximum number of replies that wait to be written. Further replies are not cached."""
MAX_ENTRY_CHARS: Final = 1024**2
"""Longer entries are not cached."""
TOUCHED_AFTER_S: Final = 86_400
"""Resolution of the time of last use, which saves a write for most uses."""

_WRITE_TIMEOUT_S: Final = 5.0
_EVICT_TIMEOUT_S: Final = 30.0
_BATCH_DELAY_S: Final = 0.1
_FINAL_WRITE_TIMEOUT_S: Final = 1.0
_BATCH: Final = 500
_SIZE_CHECK_SHARE: Final = 0.01
"""Fraction of the maximum size that one process writes before it checks the total size."""
_log = structlog.get_logger(__name__)


class DatabaseReplyCache:
    """Access of one process to the cache. Use it inside ``running``.

    ``max_bytes`` limits the whole cache. A query for replies may take ``read_timeout_s``; after a failed one there are
    no lookups for ``unavailable_s``.
    """

    def __init__(
        self, database: Database, *, max_bytes: int, read_timeout_s: float = 5.0, unavailable_s: float = 10.0
    ) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._read_timeout_s = read_timeout_s
        self._unavailable_s = unavailable_s
        self._lookups: dict[str, list[_Lookup]] = defaultdict(list)
        self._reading: asyncio.Task[None] | None = None
        self._unavailable_until = float("-inf")
        self._pending: dict[str, StoredReply] = {}
        self._used: set[str] = set()
        self._wake = asyncio.Event()
        self._written = max_bytes  # so the first write checks the total size
        self.on_event: Callable[[Event, int], None] = lambda event, count: None
        """Called with each event and its count, for metrics."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[DatabaseReplyCache]:
        """Write in the background during the block. On exit, write the rest within ``_FINAL_WRITE_TIMEOUT_S``."""
        writing = asyncio.create_task(self._run(), name="reply cache")
        try:
            yield self
        finally:
            under_way = {task for task in (writing, self._reading) if task is not None}
            for task in under_way:
                task.cancel()
            await asyncio.wait(under_way)
            self._unavailable_until = float("inf")
            _resolve(self._lookups, {})
            with suppress(TimeoutError):
                async with asyncio.timeout(_FINAL_WRITE_TIMEOUT_S):
                    await self._write()

    async def get(self, key: str) -> StoredReply | None:
        """Return the cached reply to a request, or None if there is none or the lookup fails or times out."""
        if (pending := self._pending.get(key)) is not None:
            return pending
        if time.monotonic() < self._unavailable_until:
            return None
        answered: _Lookup = asyncio.get_running_loop().create_future()
        self._lookups[key].append(answered)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="reply cache read")
        return await answered

    async def put(self, key: str, reply: LLMReply) -> None:
        """Queue a reply to be written. Until then, only this process finds it."""
        if len(self._pending) >= MAX_WAITING:
            self.on_event("lost", 1)
            return
        self._pending[key] = StoredReply(
            text=reply.text, model=reply.model, shorter_page=reply.shorter_page, text_only=reply.text_only
        )
        self._wake.set()

    async def _read(self) -> None:
        while self._lookups:
            lookups, self._lookups = self._lookups, defaultdict(list)
            replies: Mapping[str, StoredReply] = {}
            try:
                replies = await self._look_up(list(lookups))
            finally:
                _resolve(lookups, replies)

    async def _look_up(self, keys: Sequence[str]) -> dict[str, StoredReply]:
        try:
            async with asyncio.timeout(self._read_timeout_s):
                entries = await get_entries(self._database, keys)
        except (DatabaseUnavailable, TimeoutError) as error:
            self._failed("cached replies not looked up", error)
            return {}
        replies = {key: reply for key, entry in entries.items() if (reply := _decode(key, entry)) is not None}
        self.on_event("found", len(replies))
        self.on_event("missing", len(keys) - len(entries))
        self.on_event("damaged", len(entries) - len(replies))
        self._used.update(replies)
        return replies

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_BATCH_DELAY_S)
            self._wake.clear()
            await self._write()
            await self._evict_if_full()
            await cancellable_sleep(0.0)

    async def _write(self) -> None:
        """Write all queued replies. Replies that cannot be written are dropped."""
        used, self._used = self._used, set()
        while self._pending or used:
            batch = dict(islice(self._pending.items(), _BATCH))
            try:
                async with asyncio.timeout(_WRITE_TIMEOUT_S):
                    entries = await asyncio.to_thread(_entries, batch)
                    if entries:
                        await add_entries(self._database, entries)
                    if used:
                        await touch_entries(self._database, used)
            except (DatabaseUnavailable, TimeoutError) as error:
                self._failed("replies not cached", error)
                self._drop(batch)
                self.on_event("lost", len(batch))
                return
            self._drop(batch)
            used = set()
            self._written += sum(len(entry.entry) for entry in entries)
            self.on_event("stored", len(entries))
            self.on_event("lost", len(batch) - len(entries))

    def _drop(self, batch: Mapping[str, StoredReply]) -> None:
        for key in batch:
            self._pending.pop(key, None)

    async def _evict_if_full(self) -> None:
        if self._written < _SIZE_CHECK_SHARE * self._max_bytes:
            return
        try:
            async with asyncio.timeout(_EVICT_TIMEOUT_S), self._database.begin() as connection:
                removed = await evict(connection, max_bytes=self._max_bytes)
        except (DatabaseUnavailable, TimeoutError) as error:
            self._failed("cached replies not evicted", error)
            return
        self._written = 0
        if removed:
            _log.info("cached replies evicted", replies=removed)

    def _failed(self, event: str, error: Exception) -> None:
        self._unavailable_until = time.monotonic() + self._unavailable_s
        self.on_event("failed", 1)
        _log.warning(event, error=str(error) or type(error).__name__)


def _resolve(lookups: Mapping[str, list[_Lookup]], replies: Mapping[str, StoredReply]) -> None:
    for key, waiting in lookups.items():
        for each in waiting:
            if not each.done():
                each.set_result(replies.get(key))


def _entries(batch: Mapping[str, StoredReply]) -> list[CacheRow]:
    """Encode replies as cache rows. Each entry includes its key, so it is invalid under another key. Blocking."""
    written = [
        CacheRow(key=key, model=storable_text(reply.model), entry=to_entry(reply, at=key))
        for key, reply in batch.items()
    ]
    return [each for each in written if len(each.entry) <= MAX_ENTRY_CHARS]


def _decode(key: str, entry: str) -> StoredReply | None:
    try:
        return parse_entry(entry, at=key)
    except (ValueError, TypeError, LookupError):
        return None


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
    async with _connection(database) as connection:
        cursor = await connection.execute("SELECT key, entry FROM llm_cache WHERE key = ANY(%s)", [list(keys)])
        return dict(await cursor.fetchall())


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
    async with _connection(database) as connection:
        await connection.execute(query, columns)


async def touch_entries(database: Database, keys: Iterable[str]) -> None:
    """Update the time of last use. Skip rows that are locked by another worker.

    Raises:
        DatabaseUnavailable: The statement failed.
    """
    query = (
        "UPDATE llm_cache SET used_at = clock_timestamp() WHERE key IN (SELECT key FROM llm_cache"
        " WHERE key = ANY(%s) AND used_at < clock_timestamp() - make_interval(secs => %s) FOR UPDATE SKIP LOCKED)"
    )
    async with _connection(database) as connection:
        await connection.execute(query, [list(keys), TOUCHED_AFTER_S])


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


async def clear_cache(connection: AsyncConnection, *, used_before: datetime | None = None) -> CacheSize:
    """Remove the entries that were last used before a time (None: all). Return their number and size."""
    result = await connection.execute(
        text(
            "WITH removed AS (DELETE FROM llm_cache WHERE CAST(:before AS timestamptz) IS NULL OR used_at < :before"
            " RETURNING bytes) SELECT count(*), coalesce(sum(bytes), 0) FROM removed"
        ),
        {"before": used_before},
    )
    entries, size = result.one()
    return CacheSize(int(entries), int(size))


@asynccontextmanager
async def _connection(database: Database) -> AsyncIterator[DirectConnection]:
    """Yield a pooled connection. Every error of the database is reported as unavailability."""
    try:
        async with database.pooled_connection() as connection:
            yield connection
    except psycopg.DatabaseError as error:
        raise DatabaseUnavailable(f"Cannot access the cache of model replies: {type(error).__name__}") from error
