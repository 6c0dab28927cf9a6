from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import ProgrammingError

from app.errors import InvalidSettings
from app.storage.database import Database, connect_database, open_database
from app.storage.errors import DatabaseTooNew, DatabaseUnavailable
from app.storage.migrate import _SCRIPTS, _newest_revision, migrate
from app.storage.tables import metadata
from tests.fakes.settings import settings_for_tests

pytestmark = pytest.mark.postgres


@pytest.fixture
def empty_url(postgres_url: str):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE empty")
    yield postgres_url.replace("/postgres?", "/empty?")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE empty WITH (FORCE)")


async def test_migrations_match_the_metadata(database: Database):
    def differences(connection: Connection) -> Any:
        ours = {"include_name": lambda name, kind, parents: kind != "table" or name in metadata.tables}
        options = {**ours, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    async with database.begin() as connection:
        assert await connection.run_sync(differences) == []


async def test_migration_is_idempotent(database: Database):
    async with database.begin() as connection:
        await migrate(connection)


def test_scripts_are_named_after_their_revisions():
    assert ScriptDirectory(str(_SCRIPTS)).get_current_head() == _newest_revision()


async def test_concurrent_processes_can_migrate_an_empty_database(empty_url: str):
    async def start() -> None:
        async with open_database(settings_for_tests(database_url=empty_url)) as database:
            await database.ping()

    await asyncio.gather(*(start() for _ in range(5)))


async def test_interrupted_migration_is_rolled_back(empty_url: str):
    async with connect_database(empty_url) as database:
        with pytest.raises(RuntimeError):
            async with database.begin() as connection:
                await migrate(connection)
                raise RuntimeError("power cut")
        async with database.begin() as connection:
            tables = await connection.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"))
            assert tables.scalar_one() == 0


async def test_newer_database_is_rejected(database: Database, database_url: str):
    async with database.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(DatabaseTooNew, match="9999"):
        async with open_database(settings_for_tests(database_url=database_url)):
            pass


async def test_missing_database_is_unavailable():
    with pytest.raises(DatabaseUnavailable):
        async with open_database(settings_for_tests(database_url="postgresql://nobody@127.0.0.1:1/nothing")):
            pass


async def test_lost_connection_in_transaction_is_unavailable(database: Database):
    with pytest.raises(DatabaseUnavailable):
        async with database.begin() as connection:
            await connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    await database.ping()


async def test_statement_error_is_not_an_outage(database: Database):
    with pytest.raises(ProgrammingError):
        async with database.begin() as connection:
            await connection.execute(text("SELECT nothing FROM nowhere"))


@pytest.mark.parametrize("url", ["mysql://host/name", "no url at all", "postgresql"])
async def test_invalid_database_url_is_rejected_with_setting_name(url: str):
    with pytest.raises(InvalidSettings, match="ASSAY_DATABASE_URL"):
        async with open_database(settings_for_tests(database_url=url)):
            pass
