"""Replies of models that all workers on a database keep together, so that none pays for what another was told.

A cache: whatever goes wrong here costs a question to a model at most, and never a verdict. Questions that come while a
query is on its way share the next one; replies are written behind the caller's back, many in one statement.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal, TypeAlias

import structlog

from app.background import until_next_round
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.kept_replies import KeptEntry, add_entries, entries_of, make_room, touch_entries
from app.storage.storable import storable
from judges.llm.client import LLMReply
from judges.llm.response_cache import StoredReply, entry_of, read_entry

Event: TypeAlias = Literal["found", "missing", "damaged", "stored", "lost", "failed"]
_Answered: TypeAlias = asyncio.Future[StoredReply | None]

MAX_WAITING: Final = 2_000
"""Replies that wait to be written; what comes beyond is not shared."""
MAX_ENTRY_CHARS: Final = 1024**2
"""A longer reply is not shared."""

_READ_S: Final = 1.0
_WRITE_S: Final = 5.0
_ROOM_S: Final = 30.0
_AWAY_S: Final = 10.0
"""How long nothing is looked up after a query that failed."""
_GATHER_S: Final = 0.1
_LAST_S: Final = 1.0
_BATCH: Final = 500
_ROOM_SHARE: Final = 0.01
"""Of the room that there is: how much one process writes before it looks whether all is still within bounds."""
_log = structlog.get_logger(__name__)


class SharedReplies:
    """One process's part in it; works inside ``running``. ``max_bytes`` bounds what all keep together."""

    def __init__(self, database: Database, *, max_bytes: int) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._asked: dict[str, list[_Answered]] = defaultdict(list)
        self._reading: asyncio.Task[None] | None = None
        self._away_until = float("-inf")
        self._offered: dict[str, LLMReply] = {}
        self._used: set[str] = set()
        self._wake = asyncio.Event()
        self._written = max_bytes  # the first write looks
        self.told: Callable[[Event, int], None] = lambda event, count: None
        """Hears what happened, and how often."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[SharedReplies]:
        """Write for as long as the block lasts, and at its end what is left, if that is quickly done."""
        writing = asyncio.create_task(self._run(), name="shared replies")
        try:
            yield self
        finally:
            under_way = {task for task in (writing, self._reading) if task is not None}
            for task in under_way:
                task.cancel()
            await asyncio.wait(under_way)
            self._away_until = float("inf")
            _answer(self._asked, {})
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_S):
                    await self._write()

    async def get(self, key: str) -> StoredReply | None:
        """The reply that any worker was given to the request with this key; None also where that is not known soon."""
        if time.monotonic() < self._away_until:
            return None
        answered: _Answered = asyncio.get_running_loop().create_future()
        self._asked[key].append(answered)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="shared replies read")
        return await answered

    def offer(self, key: str, reply: LLMReply) -> None:
        """Have a reply written soon."""
        if len(self._offered) >= MAX_WAITING:
            self.told("lost", 1)
            return
        self._offered[key] = reply
        self._wake.set()

    async def _read(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, defaultdict(list)
            found: Mapping[str, StoredReply] = {}
            try:
                found = await self._looked_up(list(asked))
            finally:
                _answer(asked, found)

    async def _looked_up(self, keys: Sequence[str]) -> dict[str, StoredReply]:
        try:
            async with asyncio.timeout(_READ_S):
                entries = await entries_of(self._database, keys)
        except (DatabaseUnavailable, TimeoutError) as error:
            self._failed("shared replies not looked up", error)
            return {}
        found = {key: reply for key, entry in entries.items() if (reply := _read_back(key, entry)) is not None}
        self.told("found", len(found))
        self.told("missing", len(keys) - len(entries))
        self.told("damaged", len(entries) - len(found))
        self._used.update(found)
        return found

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_GATHER_S)
            self._wake.clear()
            await self._write()
            await self._keep_within_bounds()
            await until_next_round(0.0)

    async def _write(self) -> None:
        """Everything that waits. What cannot be written now is lost to the others, and still at hand here."""
        used, self._used = self._used, set()
        while self._offered or used:
            keys = list(self._offered)[:_BATCH]
            batch = {key: self._offered.pop(key) for key in keys}
            try:
                async with asyncio.timeout(_WRITE_S):
                    entries = await asyncio.to_thread(_entries, batch)
                    if entries:
                        await add_entries(self._database, entries)
                    if used:
                        await touch_entries(self._database, used)
            except (DatabaseUnavailable, TimeoutError) as error:
                self._failed("shared replies not stored", error)
                self.told("lost", len(batch))
                return
            except asyncio.CancelledError:
                self._offered = batch | self._offered
                raise
            used = set()
            self._written += sum(len(each.entry) for each in entries)
            self.told("stored", len(entries))
            self.told("lost", len(batch) - len(entries))

    async def _keep_within_bounds(self) -> None:
        if self._written < _ROOM_SHARE * self._max_bytes:
            return
        try:
            async with asyncio.timeout(_ROOM_S), self._database.begin() as connection:
                removed = await make_room(connection, max_bytes=self._max_bytes)
        except (DatabaseUnavailable, TimeoutError) as error:
            self._failed("no room made for shared replies", error)
            return
        self._written = 0
        if removed:
            _log.info("shared replies forgotten", replies=removed)

    def _failed(self, event: str, error: Exception) -> None:
        self._away_until = time.monotonic() + _AWAY_S
        self.told("failed", 1)
        _log.warning(event, error=str(error) or type(error).__name__)


def _answer(asked: Mapping[str, list[_Answered]], found: Mapping[str, StoredReply]) -> None:
    for key, waiting in asked.items():
        for each in waiting:
            if not each.done():
                each.set_result(found.get(key))


def _entries(batch: Mapping[str, LLMReply]) -> list[KeptEntry]:
    """Each bound to its key: under another one it is none. Blocks."""
    written = [
        KeptEntry(key=key, model=storable(reply.model), entry=entry_of(reply, at=key)) for key, reply in batch.items()
    ]
    return [each for each in written if len(each.entry) <= MAX_ENTRY_CHARS]


def _read_back(key: str, entry: str) -> StoredReply | None:
    try:
        return read_entry(entry, at=key)
    except (ValueError, TypeError, LookupError):
        return None
