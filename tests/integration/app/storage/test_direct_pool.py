from __future__ import annotations

import asyncio
import logging
import socket

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


async def test_requests_fail_after_the_first_attempt_if_the_server_does_not_respond(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr("app.storage.direct_pool._CONNECT_TIMEOUT_S", 2)  # the minimum of libpq
    with caplog.at_level(logging.WARNING, "psycopg.pool"), socket.create_server(("127.0.0.1", 0)) as silent:
        async with DirectPool(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/x", _SIZE).open() as pool:
            outcomes = await asyncio.gather(*(_backend(pool) for _ in range(3 * _SIZE)), return_exceptions=True)
            failed_attempts = [line for line in caplog.messages if line.startswith("error connecting")]
    assert {str(outcome) for outcome in outcomes} == {"The database is unavailable"}
    assert len(failed_attempts) == 1


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


async def test_lost_connection_is_unavailable_and_not_used_again(database_url: str):
    async with DirectPool(database_url, 1).open() as pool:
        lost = await _backend(pool)
        with pytest.raises(DatabaseUnavailable):
            async with pool.connection() as connection:
                await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert await _backend(pool) != lost


async def test_connection_left_in_a_transaction_is_rolled_back(database_url: str):
    async with DirectPool(database_url, 1).open() as pool:
        with pytest.raises(LookupError):
            async with pool.connection() as connection:
                await connection.execute("BEGIN")
                await connection.execute("CREATE TABLE left_over (id int)")
                raise LookupError
        async with pool.connection() as connection:
            assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
            row = await (await connection.execute("SELECT to_regclass('left_over')")).fetchone()
            assert row == (None,)


async def test_busy_pool_is_reported_as_such(database_url: str, monkeypatch: pytest.MonkeyPatch):
    async with DirectPool(database_url, 1).open() as pool, pool.connection():
        monkeypatch.setattr(pool._pool, "timeout", 0)
        with pytest.raises(DatabaseUnavailable, match="busy"):
            await _backend(pool)


async def test_cancelled_request_returns_its_connection(database_url: str):
    async with DirectPool(database_url, 1).open() as pool:
        entered = asyncio.Event()

        async def sleep() -> None:
            async with pool.connection() as connection:
                entered.set()
                await connection.execute("SELECT pg_sleep(60)")

        request = asyncio.create_task(sleep())
        await entered.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert await _backend(pool)
