"""Connections without a layer in between, for the few statements that every request makes.

Waiting for a free one is patient, since that only means that much is asked; waiting for a server that does not answer
is not, and while it is known to be away nobody waits at all.
"""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus

from app.storage.errors import DatabaseUnavailable, StorageFull

DirectConnection: TypeAlias = psycopg.AsyncConnection[Any]

_CONNECT_S = 2
DISK_FULL = "53100"
_SIZE = 8
_PATIENCE_S = 5.0
_ANSWER_S = 1.5
_AWAY_S = 0.5


class DirectConnections:
    """A few open connections in autocommit mode: each statement is a transaction."""

    def __init__(self, url: str) -> None:
        """``url``: ``postgresql://...`` as libpq reads it."""
        self._url = url
        self._idle: list[DirectConnection] = []
        self._places = asyncio.Semaphore(_SIZE)
        self._away_until = float("-inf")
        self._ended = False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[DirectConnections]:
        """Connections are made when they are wanted, and closed at the end of the block."""
        try:
            yield self
        finally:
            self._ended = True
            while self._idle:
                await self._idle.pop().close()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[DirectConnection]:
        """A connection during the block.

        Raises:
            DatabaseUnavailable: the server cannot be reached, went away meanwhile, or is asked too much.
        """
        await self._take_place()
        try:
            connection = await self._idle_or_new()
            try:
                yield connection
            finally:
                await self._put_back(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if error.sqlstate == DISK_FULL:
                raise StorageFull("the database has no room left on its disk") from error
            raise DatabaseUnavailable(f"the database does not answer: {type(error).__name__}") from error
        finally:
            self._places.release()

    async def _take_place(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._places.acquire()
        except TimeoutError:
            raise DatabaseUnavailable("all database connections are busy") from None
        if time.monotonic() < self._away_until:
            self._places.release()
            raise DatabaseUnavailable("the database does not answer")

    async def _idle_or_new(self) -> DirectConnection:
        while self._idle:
            connection = self._idle.pop()
            if not _hung_up(connection):
                return connection
            await connection.close()
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await psycopg.AsyncConnection.connect(self._url, autocommit=True, connect_timeout=_CONNECT_S)
        except (psycopg.OperationalError, TimeoutError) as error:
            self._away_until = time.monotonic() + _AWAY_S
            raise DatabaseUnavailable(f"the database does not answer: {type(error).__name__}") from error

    async def _put_back(self, connection: DirectConnection) -> None:
        """Keep it for the next one, unless it is broken or in the middle of something."""
        if self._ended or connection.info.transaction_status is not TransactionStatus.IDLE:
            await connection.close()
        else:
            self._idle.append(connection)


def _hung_up(connection: DirectConnection) -> bool:
    """Whether the server has closed an idle connection. Asks the socket and not the server: no round trip."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
