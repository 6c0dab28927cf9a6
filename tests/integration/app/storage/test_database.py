from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from app.errors import InvalidSettings
from app.observability.metrics import Metrics
from app.service import open_service
from app.settings import MIN_CONNECTIONS
from app.storage.database import Database, open_database
from app.storage.errors import DatabaseUnavailable, OtherSchema
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests

pytestmark = pytest.mark.postgres


@pytest.fixture
def database_url(fresh_database_url: str) -> str:
    """Database of the test's own: some tests change its schema."""
    return fresh_database_url


@pytest.fixture
def empty_url(postgres_url: str):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE empty")
    yield postgres_url.replace("/postgres?", "/empty?")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE empty WITH (FORCE)")


async def test_transaction_that_a_deadlock_ended_can_be_tried_again(database: Database):
    both_hold_one = asyncio.Barrier(2)

    async def lock(first: int, second: int) -> None:
        async with database.begin() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": first})
            await both_hold_one.wait()
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": second})

    ended = await asyncio.gather(lock(1, 2), lock(2, 1), return_exceptions=True)
    [error] = [each for each in ended if each is not None]
    assert isinstance(error, DatabaseUnavailable)


async def test_concurrent_processes_can_migrate_an_empty_database(empty_url: str):
    async def start() -> None:
        async with open_database(settings_for_tests(database_url=empty_url)) as database:
            await database.ping()

    await asyncio.gather(*(start() for _ in range(3)))


@pytest.mark.parametrize("revision", ["0008", "ffffffffffff"])
async def test_database_of_another_version_is_refused(database: Database, database_url: str, revision: str):
    async with database.begin() as connection:
        await connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
    with pytest.raises(OtherSchema, match=f"schema {revision}.*: start a new data folder with ASSAY_DATA_DIR"):
        async with open_database(settings_for_tests(database_url=database_url)):
            pass


@pytest.mark.parametrize("url", ["mysql://host/name", "no url at all"])
async def test_invalid_database_url_is_rejected_with_setting_name(url: str):
    with pytest.raises(InvalidSettings, match="ASSAY_DATABASE_URL"):
        async with open_database(settings_for_tests(database_url=url)):
            pass


async def test_service_opens_at_most_the_configured_number_of_connections(database_url: str, tmp_path: Path):
    settings = settings_for_tests(data_dir=tmp_path, database_url=database_url, database_connections=MIN_CONNECTIONS)
    queries = 2 * MIN_CONNECTIONS

    async def count(connection: psycopg.AsyncConnection) -> int:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        row = await (await connection.execute(query)).fetchone()
        assert row is not None
        return int(row[0])

    async def sleep(database: Database) -> None:
        async with database.begin() as connection:
            await connection.execute(text("SELECT pg_sleep(0.2)"))

    async def sleep_directly(database: Database) -> None:
        async with database.pooled_connection() as connection:
            await connection.execute("SELECT pg_sleep(0.2)")

    opened = open_service(settings, concurrency=4, metrics=Metrics(), runtime=scripted_runtime(tmp_path))
    async with (
        await psycopg.AsyncConnection.connect(database_url, autocommit=True) as watching,
        opened as service,
        asyncio.TaskGroup() as group,
    ):
        held = [group.create_task(query(service.database)) for _ in range(queries) for query in (sleep, sleep_directly)]
        counts = []
        while not all(one.done() for one in held):
            counts.append(await count(watching))
        counts.append(await count(watching))  # the connections stay open
    assert MIN_CONNECTIONS // 2 < max(counts) <= MIN_CONNECTIONS
