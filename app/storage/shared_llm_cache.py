"""Reply cache in the database, shared by all workers.

A failure here costs at most one more model request, and never changes a verdict. Lookups that arrive during a query
share the next query. Replies are written in the background, many per statement.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal, TypeAlias

import structlog

from app.async_tools import cancellable_sleep
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.llm_cache import CacheRow, add_entries, evict, get_entries, touch_entries
from app.storage.text_cleanup import storable_text
from judges.llm.client import LLMReply
from judges.llm.response_cache import StoredReply, parse_entry, to_entry

Event: TypeAlias = Literal["found", "missing", "damaged", "stored", "lost", "failed"]
_Lookup: TypeAlias = asyncio.Future[StoredReply | None]

MAX_WAITING: Final = 2_000
"""Maximum number of replies that wait to be written. Further replies are not shared."""
MAX_ENTRY_CHARS: Final = 1024**2
"""Longer entries are not shared."""

_READ_TIMEOUT_S: Final = 1.0
_WRITE_TIMEOUT_S: Final = 5.0
_EVICT_TIMEOUT_S: Final = 30.0
_UNAVAILABLE_S: Final = 10.0
"""Time without lookups after a failed query."""
_BATCH_DELAY_S: Final = 0.1
_FINAL_WRITE_TIMEOUT_S: Final = 1.0
_BATCH: Final = 500
_SIZE_CHECK_SHARE: Final = 0.01
"""Fraction of the maximum size that one process writes before it checks the total size."""
_log = structlog.get_logger(__name__)


class SharedLLMCache:
    """Access of one process to the shared cache. Use it inside ``running``. ``max_bytes`` limits the whole cache."""

    def __init__(self, database: Database, *, max_bytes: int) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._lookups: dict[str, list[_Lookup]] = defaultdict(list)
        self._reading: asyncio.Task[None] | None = None
        self._unavailable_until = float("-inf")
        self._pending: dict[str, LLMReply] = {}
        self._used: set[str] = set()
        self._wake = asyncio.Event()
        self._written = max_bytes  # so the first write checks the total size
        self.on_event: Callable[[Event, int], None] = lambda event, count: None
        """Called with each event and its count, for metrics."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SharedLLMCache]:
        """Write in the background during the block. On exit, write the rest within ``_FINAL_WRITE_TIMEOUT_S``."""
        writing = asyncio.create_task(self._run(), name="shared replies")
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
        if time.monotonic() < self._unavailable_until:
            return None
        answered: _Lookup = asyncio.get_running_loop().create_future()
        self._lookups[key].append(answered)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="shared replies read")
        return await answered

    def offer(self, key: str, reply: LLMReply) -> None:
        """Queue a reply to be written."""
        if len(self._pending) >= MAX_WAITING:
            self.on_event("lost", 1)
            return
        self._pending[key] = reply
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
            async with asyncio.timeout(_READ_TIMEOUT_S):
                entries = await get_entries(self._database, keys)
        except (DatabaseUnavailable, TimeoutError) as error:
            self._failed("shared replies not looked up", error)
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
        """Write all queued replies. Replies that cannot be written are not shared, but remain in the local cache."""
        used, self._used = self._used, set()
        while self._pending or used:
            keys = list(self._pending)[:_BATCH]
            batch = {key: self._pending.pop(key) for key in keys}
            try:
                async with asyncio.timeout(_WRITE_TIMEOUT_S):
                    entries = await asyncio.to_thread(_entries, batch)
                    if entries:
                        await add_entries(self._database, entries)
                    if used:
                        await touch_entries(self._database, used)
            except (DatabaseUnavailable, TimeoutError) as error:
                self._failed("shared replies not stored", error)
                self.on_event("lost", len(batch))
                return
            except asyncio.CancelledError:
                self._pending = batch | self._pending
                raise
            used = set()
            self._written += sum(len(entry.entry) for entry in entries)
            self.on_event("stored", len(entries))
            self.on_event("lost", len(batch) - len(entries))

    async def _evict_if_full(self) -> None:
        if self._written < _SIZE_CHECK_SHARE * self._max_bytes:
            return
        try:
            async with asyncio.timeout(_EVICT_TIMEOUT_S), self._database.begin() as connection:
                removed = await evict(connection, max_bytes=self._max_bytes)
        except (DatabaseUnavailable, TimeoutError) as error:
            self._failed("shared replies not evicted", error)
            return
        self._written = 0
        if removed:
            _log.info("shared replies evicted", replies=removed)

    def _failed(self, event: str, error: Exception) -> None:
        self._unavailable_until = time.monotonic() + _UNAVAILABLE_S
        self.on_event("failed", 1)
        _log.warning(event, error=str(error) or type(error).__name__)


def _resolve(lookups: Mapping[str, list[_Lookup]], replies: Mapping[str, StoredReply]) -> None:
    for key, waiting in lookups.items():
        for each in waiting:
            if not each.done():
                each.set_result(replies.get(key))


def _entries(batch: Mapping[str, LLMReply]) -> list[CacheRow]:
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
