"""Turns over all workers: one captures a page, the others wait for it; visits to a host are kept apart.

Both are rows with a time, and the only clock is the database's. A turn that is not renewed runs out by itself, so a
worker that died holds nobody up for longer than ``TURN_S``.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import structlog
from sqlalchemy import delete, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from app.background import until_next_round
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.tables import capture_turns, host_visits
from cache.errors import IndexFailed

TURN_S = 8.0
RENEW_S = 2.0
_LOOK_AGAIN_S = 0.2
_WAIT_S = 300.0
_FORGOTTEN_S = 3600.0
_MAX_GAP_S = 60.0
_log = structlog.get_logger(__name__)


class PostgresTurns:
    """Implements ``cache.capture_locks.CaptureTurns`` for all processes on one database."""

    def __init__(self, database: Database, *, turn_s: float = TURN_S, renew_s: float = RENEW_S) -> None:
        """``turn_s``: how long a turn lasts that is not renewed; it is, every ``renew_s``, while its holder lives."""
        self._database = database
        self._turn_s = turn_s
        self._renew_s = renew_s

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        hashed, holder = _digest(key), uuid4().hex
        await self._taken(hashed, holder)
        renewing = asyncio.create_task(self._renew(hashed, holder), name=f"turn {hashed[:12]}")
        try:
            yield
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
            await asyncio.shield(self._give_back(hashed, holder))

    async def is_free(self, key: str) -> bool:
        """Whether nobody captures the page of ``key`` now. Raises DatabaseUnavailable."""
        taken = select(capture_turns.c.holder).where(
            capture_turns.c.key_sha256 == _digest(key), capture_turns.c.expires_at >= func.clock_timestamp()
        )
        async with self._database.begin() as connection:
            return (await connection.execute(taken)).first() is None

    async def _taken(self, hashed: str, holder: str) -> None:
        try:
            async with asyncio.timeout(_WAIT_S):
                while not await self._take(hashed, holder):  # noqa: ASYNC110 - others give back in other processes
                    await asyncio.sleep(_LOOK_AGAIN_S)
        except TimeoutError as late:
            raise IndexFailed(f"another worker has been at this page for {_WAIT_S:g} s") from late
        except DatabaseUnavailable as absent:
            raise IndexFailed(str(absent)) from absent

    async def _take(self, hashed: str, holder: str) -> bool:
        until = func.clock_timestamp() + _interval(self._turn_s)
        row = {"key_sha256": hashed, "holder": holder, "expires_at": until}
        take = (
            insert(capture_turns)
            .values(row)
            .on_conflict_do_update(
                index_elements=["key_sha256"],
                set_={"holder": holder, "expires_at": until},
                where=capture_turns.c.expires_at < func.clock_timestamp(),
            )
        )
        async with self._database.begin() as connection:
            return (await connection.execute(take.returning(capture_turns.c.holder))).first() is not None

    async def _renew(self, hashed: str, holder: str) -> None:
        until = func.clock_timestamp() + _interval(self._turn_s)
        mine = capture_turns.c.key_sha256 == hashed, capture_turns.c.holder == holder
        while True:
            await until_next_round(self._renew_s)
            try:
                async with self._database.begin() as connection:
                    renewed = await connection.execute(update(capture_turns).where(*mine).values(expires_at=until))
            except DatabaseUnavailable:
                continue  # it may come back before the turn runs out
            if not renewed.rowcount:
                # We were away for too long. What we see is one more capture, and harms nobody.
                _log.warning("capture_turn_lost", key_sha256=hashed)
                return

    async def _give_back(self, hashed: str, holder: str) -> None:
        mine = (capture_turns.c.key_sha256 == hashed) & (capture_turns.c.holder == holder)
        forgotten = capture_turns.c.expires_at < func.clock_timestamp() - _interval(_FORGOTTEN_S)
        try:
            async with self._database.begin() as connection:
                await connection.execute(delete(capture_turns).where(or_(mine, forgotten)))
        except DatabaseUnavailable:
            _log.warning("capture_turn_left", key_sha256=hashed)  # it runs out by itself


class PostgresPace:
    """Implements ``cache.capture_locks.HostPace`` for all processes on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def wait(self, host: str, gap_s: float) -> None:
        """Reserve the next free moment of ``host`` and wait for it. Without a database nobody is held up."""
        gap = _interval(min(gap_s, _MAX_GAP_S))
        now = func.clock_timestamp()
        reserve = (
            insert(host_visits)
            .values(host=host, next_at=now + gap)
            .on_conflict_do_update(
                index_elements=["host"], set_={"next_at": func.greatest(host_visits.c.next_at, now) + gap}
            )
            .returning(func.extract("epoch", host_visits.c.next_at - gap - func.clock_timestamp()))
        )
        forget = delete(host_visits).where(host_visits.c.next_at < now - _interval(_FORGOTTEN_S))
        try:
            async with self._database.begin() as connection:
                wait_s = float((await connection.execute(reserve)).scalar_one())
                await connection.execute(forget)
        except DatabaseUnavailable:
            return  # keeping the capture will fail and say so; politeness need not
        await asyncio.sleep(max(0.0, wait_s))


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _interval(seconds: float) -> object:
    return text(f"interval '{float(seconds)!r} seconds'")
