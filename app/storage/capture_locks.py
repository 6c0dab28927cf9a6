"""Capture locks and host pacing for all workers on one database.

Only one worker captures a page at a time; the others wait for its capture. Visits to one host are spaced out. Both are
rows with an expiry time by the database's clock. A lock that is not renewed expires after ``LOCK_TTL_S``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import structlog
from sqlalchemy import delete, func, or_, text, update
from sqlalchemy.dialects.postgresql import insert

from app.async_tools import cancellable_sleep
from app.storage.captures import key_digest
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.tables import capture_locks, host_visits
from cache.errors import IndexFailed

LOCK_TTL_S = 8.0
RENEW_S = 2.0
_POLL_S = 0.2
_ACQUIRE_TIMEOUT_S = 300.0
_DELETE_AFTER_S = 3600.0
_MAX_GAP_S = 60.0
_log = structlog.get_logger(__name__)


class PostgresCaptureLocks:
    """Locks of page captures. Implements ``cache.capture_locks.CaptureLocks`` for all processes on one database."""

    def __init__(self, database: Database, *, ttl_s: float = LOCK_TTL_S, renew_s: float = RENEW_S) -> None:
        """``ttl_s``: time to live of a lock. It is renewed every ``renew_s`` while it is held."""
        self._database = database
        self._ttl_s = ttl_s
        self._renew_s = renew_s
        self._held: dict[str, str] = {}
        """Digests of the keys of the locks that this process holds, by holder."""
        self._renewing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        hashed, holder = key_digest(key), uuid4().hex
        await self._acquire(hashed, holder)
        self._held[holder] = hashed
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew_held(), name="capture locks")
        try:
            yield
        finally:
            self._held.pop(holder, None)
            await asyncio.shield(self._release(hashed, holder))

    async def _acquire(self, hashed: str, holder: str) -> None:
        try:
            async with asyncio.timeout(_ACQUIRE_TIMEOUT_S):
                while not await self._try_acquire(hashed, holder):  # noqa: ASYNC110 - other processes release the lock
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as late:
            raise IndexFailed(
                f"Another worker has been capturing this page for {_ACQUIRE_TIMEOUT_S:g} s: retry later"
            ) from late
        except DatabaseUnavailable as absent:
            raise IndexFailed(str(absent)) from absent

    async def _try_acquire(self, hashed: str, holder: str) -> bool:
        until = func.clock_timestamp() + _interval(self._ttl_s)
        row = {"key_sha256": hashed, "holder": holder, "expires_at": until}
        acquire = (
            insert(capture_locks)
            .values(row)
            .on_conflict_do_update(
                index_elements=["key_sha256"],
                set_={"holder": holder, "expires_at": until},
                where=capture_locks.c.expires_at < func.clock_timestamp(),
            )
        )
        async with self._database.begin() as connection:
            return (await connection.execute(acquire.returning(capture_locks.c.holder))).first() is not None

    async def _renew_held(self) -> None:
        """Renew all locks of this process in one statement, until it holds none."""
        until = func.clock_timestamp() + _interval(self._ttl_s)
        while True:
            await cancellable_sleep(self._renew_s)
            if not self._held:
                return
            holders, hashed = list(self._held), list(self._held.values())
            renew = (
                update(capture_locks)
                .where(capture_locks.c.key_sha256.in_(hashed), capture_locks.c.holder.in_(holders))
                .values(expires_at=until)
                .returning(capture_locks.c.holder)
            )
            try:
                async with self._database.begin() as connection:
                    renewed = set((await connection.execute(renew)).scalars())
            except DatabaseUnavailable:
                continue  # retry before the locks expire
            for holder in set(holders) - renewed:
                if (lost := self._held.pop(holder, None)) is not None:
                    # The lock has expired. The worst case is a second capture of the page.
                    _log.warning("capture lock lost", key_sha256=lost)

    async def _release(self, hashed: str, holder: str) -> None:
        is_own_lock = (capture_locks.c.key_sha256 == hashed) & (capture_locks.c.holder == holder)
        forgotten = capture_locks.c.expires_at < func.clock_timestamp() - _interval(_DELETE_AFTER_S)
        try:
            async with self._database.begin() as connection:
                await connection.execute(delete(capture_locks).where(or_(is_own_lock, forgotten)))
        except DatabaseUnavailable:
            _log.warning("capture lock not released", key_sha256=hashed)  # the lock expires


class PostgresHostPacing:
    """Pacing of visits to hosts. Implements ``cache.capture_locks.HostPacing`` for all processes on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def wait(self, host: str, interval_s: float) -> None:
        """Reserve the next time slot of ``host`` and wait for it. If the database is unavailable, do not wait."""
        gap = _interval(min(interval_s, _MAX_GAP_S))
        now = func.clock_timestamp()
        reserve = (
            insert(host_visits)
            .values(host=host, next_at=now + gap)
            .on_conflict_do_update(
                index_elements=["host"], set_={"next_at": func.greatest(host_visits.c.next_at, now) + gap}
            )
            .returning(func.extract("epoch", host_visits.c.next_at - gap - func.clock_timestamp()))
        )
        delete_old = delete(host_visits).where(host_visits.c.next_at < now - _interval(_DELETE_AFTER_S))
        try:
            async with self._database.begin() as connection:
                wait_s = float((await connection.execute(reserve)).scalar_one())
                await connection.execute(delete_old)
        except DatabaseUnavailable:
            return  # storing the capture will fail and report the error
        await asyncio.sleep(max(0.0, wait_s))


def _interval(seconds: float) -> object:
    return text(f"interval '{float(seconds)!r} seconds'")
