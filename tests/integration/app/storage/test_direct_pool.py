from __future__ import annotations

import asyncio

import psycopg
import pytest

from app.storage.direct_pool import DirectPool
from app.storage.errors import DatabaseUnavailable

pytestmark = pytest.mark.postgres

_SIZE = 3


async def _backend(pool: DirectPool) -> int:
    async with pool.connection() as connection:
        return connection.info.backend_pid


async def test_requests_fail_without_waiting_for_the_pool_if_the_server_refuses_connections():
    async with DirectPool("postgresql://nobody@127.0.0.1:1/nothing", _SIZE).open() as pool:
        requests = [_backend(pool) for _ in range(3 * _SIZE)]
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert {(type(outcome), str(outcome)) for outcome in outcomes} == {
            (DatabaseUnavailable, "The database is unavailable")
        }


async def test_pool_connects_again_once_the_server_is_back(database_url: str, monkeypatch: pytest.MonkeyPatch):
    connect = psycopg.AsyncConnection.connect

    async def refuse(*_args: object, **_options: object) -> None:
        raise psycopg.OperationalError("connection refused")

    async with DirectPool(database_url, _SIZE).open() as pool:
        monkeypatch.setattr(psycopg.AsyncConnection, "connect", refuse)
        with pytest.raises(DatabaseUnavailable):
            await _backend(pool)
        monkeypatch.setattr(psycopg.AsyncConnection, "connect", connect)
        assert await _backend(pool)


async def test_idle_connections_that_the_server_closed_are_replaced(database_url: str):
    async with DirectPool(database_url, _SIZE).open() as pool:
        async with pool.connection(), pool.connection(), pool.connection() as connection:
            cursor = await connection.execute(
                "SELECT pid, pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            ended = {pid for pid, _ in await cursor.fetchall()}
        assert len(ended) >= _SIZE - 1
        assert not ended & {await _backend(pool) for _ in range(2 * _SIZE)}
        await asyncio.gather(*(_backend(pool) for _ in range(3 * _SIZE)))


async def test_busy_pool_is_reported_as_such(database_url: str, monkeypatch: pytest.MonkeyPatch):
    async with DirectPool(database_url, 1).open() as pool, pool.connection():
        monkeypatch.setattr(pool.pool, "timeout", 0)
        with pytest.raises(DatabaseUnavailable, match="busy"):
            await _backend(pool)
