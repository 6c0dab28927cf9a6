"""Connection pool without SQLAlchemy, for the few statements that every request runs.

The pool waits ``_POOL_WAIT_S`` for a free connection, because a busy pool only means high load. A server that does not
respond fails after ``_CONNECT_TIMEOUT_S``. After that, requests fail at once for ``_UNAVAILABLE_S``.
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

_LIBPQ_CONNECT_TIMEOUT_S = 2
DISK_FULL = "53100"
_POOL_SIZE = 8
_POOL_WAIT_S = 5.0
_CONNECT_TIMEOUT_S = 1.5
_UNAVAILABLE_S = 0.5


class DirectPool:
    """Pool of psycopg connections in autocommit mode: each statement is a transaction."""

    def __init__(self, url: str) -> None:
        """``url``: ``postgresql://...`` in libpq syntax."""
        self._url = url
        self._idle: list[DirectConnection] = []
        self._slots = asyncio.Semaphore(_POOL_SIZE)
        self._unavailable_until = float("-inf")
        self._closed = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[DirectPool]:
        """Open the pool during the block. Connections are created on demand."""
        try:
            yield self
        finally:
            self._closed = True
            while self._idle:
                await self._idle.pop().close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[DirectConnection]:
        """Yield a connection for the block.

        Raises:
            DatabaseUnavailable: The server cannot be reached, the connection was lost, or all connections are busy.
            StorageFull: The server's disk is full.
        """
        await self._acquire_slot()
        try:
            connection = await self._acquire_connection()
            try:
                yield connection
            finally:
                await self._release(connection)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if error.sqlstate == DISK_FULL:
                raise StorageFull("The disk of the database is full: free some space") from error
            raise DatabaseUnavailable(f"The database is unavailable: {type(error).__name__}") from error
        finally:
            self._slots.release()

    async def _acquire_slot(self) -> None:
        try:
            async with asyncio.timeout(_POOL_WAIT_S):
                await self._slots.acquire()
        except TimeoutError:
            raise DatabaseUnavailable("All database connections are busy: retry later") from None
        if time.monotonic() < self._unavailable_until:
            self._slots.release()
            raise DatabaseUnavailable("The database is unavailable")

    async def _acquire_connection(self) -> DirectConnection:
        while self._idle:
            connection = self._idle.pop()
            if not _is_closed(connection):
                return connection
            await connection.close()
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                return await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, connect_timeout=_LIBPQ_CONNECT_TIMEOUT_S
                )
        except (psycopg.OperationalError, TimeoutError) as error:
            self._unavailable_until = time.monotonic() + _UNAVAILABLE_S
            raise DatabaseUnavailable(f"The database is unavailable: {type(error).__name__}") from error

    async def _release(self, connection: DirectConnection) -> None:
        """Return a connection to the pool. Close it if it is broken or inside a transaction."""
        if self._closed or connection.info.transaction_status is not TransactionStatus.IDLE:
            await connection.close()
        else:
            self._idle.append(connection)


def _is_closed(connection: DirectConnection) -> bool:
    """Return whether the server has closed an idle connection. Checks the socket, so it needs no round trip."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
