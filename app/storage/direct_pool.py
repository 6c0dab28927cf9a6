"""Connection pool without SQLAlchemy, for the few statements that every request runs.

A request waits ``_POOL_WAIT_S`` for a free connection, because a busy pool only means high load. If the pool cannot
connect, the waiting requests fail at once: after one retry, or without a retry if the server did not respond.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, TypeAlias

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from app.storage.errors import DatabaseUnavailable, StorageFull, database_unavailable

DirectConnection: TypeAlias = psycopg.AsyncConnection[Any]

DISK_FULL = "53100"
_POOL_WAIT_S = 5.0
_CONNECT_TIMEOUT_S = 2


class _Connection(psycopg.AsyncConnection[Any]):
    """Connection that calls the option ``timed_out`` if the server does not respond to the connection request."""

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:
        timed_out = options.pop("timed_out")
        try:
            return await super().connect(conninfo, **options)
        except psycopg.errors.ConnectionTimeout:
            timed_out()
            raise


async def _set_autocommit(connection: DirectConnection) -> None:
    await connection.set_autocommit(True)


class DirectPool:
    """Pool of psycopg connections in autocommit mode: each statement is a transaction. The job queue uses it too."""

    def __init__(self, url: str, size: int) -> None:
        """``url``: ``postgresql://...`` in libpq syntax. ``size``: maximum connections."""
        self.pool: AsyncConnectionPool[DirectConnection] = AsyncConnectionPool(
            url,
            connection_class=_Connection,
            kwargs={"connect_timeout": _CONNECT_TIMEOUT_S, "timed_out": self._fail_waiting},
            configure=_set_autocommit,  # not in kwargs, because procrastinate passes it for its listener
            min_size=0,
            max_size=size,
            open=False,
            timeout=_POOL_WAIT_S,
            check=self._check,
            reconnect_timeout=0,
            reconnect_failed=lambda _pool: self._fail_waiting(),
        )
        self._waiting: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[DirectPool]:
        """Open the pool during the block. Connections are created on demand."""
        async with self.pool:
            yield self

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[DirectConnection]:
        """Yield a connection for the block.

        Raises:
            DatabaseUnavailable: The server cannot be reached, the connection was lost, or all connections are busy.
            StorageFull: The server's disk is full.
        """
        try:
            connection = await self._acquire()
            try:
                yield connection
            finally:
                await self.pool.putconn(connection)
        except PoolTimeout:
            raise DatabaseUnavailable("All database connections are busy: retry later") from None
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if error.sqlstate == DISK_FULL:
                raise StorageFull("The disk of the database is full: free some space") from error
            raise database_unavailable(error) from error

    async def _acquire(self) -> DirectConnection:
        try:
            async with asyncio.timeout(None) as waiting:
                self._waiting.add(waiting)
                return await self.pool.getconn()
        except TimeoutError:
            raise DatabaseUnavailable("The database is unavailable") from None
        finally:
            self._waiting.discard(waiting)

    def _fail_waiting(self) -> None:
        """End the waiting requests: the pool cannot connect, and would let them wait ``_POOL_WAIT_S``."""
        waiting, self._waiting = self._waiting, set()
        for request in waiting:
            request.reschedule(0)

    async def _check(self, connection: DirectConnection) -> None:
        """Raise if the server has closed an idle connection. Checks the socket, so it needs no round trip.

        The others were probably closed as well. The pool would try them one by one, with a pause after each.
        """
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        if poll.poll(0):
            await self.pool.drain()
            raise psycopg.OperationalError("The server has closed the connection")
