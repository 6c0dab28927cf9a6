"""One real PostgreSQL server for the test session, and a migrated database that is empty at the start of each test."""

from __future__ import annotations

import asyncio
import functools
import shutil
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from app.storage.database import Database, connect_database, migrate
from app.storage.embedded import EmbeddedPostgres
from tests.fakes.folders import service_folder
from tests.fakes.services import Rig
from tests.standin.llm import StandInLLM
from tests.unit.app.conftest import assay  # noqa: F401 - fixture

_TEMPLATE = "migrated"
_names = count(1)


def _named(url: str, database: str) -> str:
    return url.replace("/postgres?", f"/{database}?")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Return the URL of a running server. Its folder is outside pytest's folder, which the server's account cannot
    read."""
    folder = service_folder("assay-test-")
    server = EmbeddedPostgres(folder)
    url = server.start()
    with psycopg.connect(url, autocommit=True) as connection:
        # No test needs durability or old statistics, and creating a database for each test would wait for the disk.
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(f"CREATE DATABASE {_TEMPLATE}")

    async def prepare() -> None:
        async with connect_database(_named(url, _TEMPLATE)) as database, database.begin() as connection:
            await migrate(connection)

    asyncio.run(prepare())
    yield url
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def server_folder() -> Iterator[Path]:
    """Return a folder for a database server of the test's own."""
    path = service_folder("assay-test-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def model() -> AsyncIterator[StandInLLM]:
    """Stand-in model over HTTP that confirms every claim, unless a test scripts it."""
    async with StandInLLM() as server:
        yield server


@pytest.fixture(autouse=True, scope="session")
def patient_database_clients() -> Iterator[None]:
    """Raise the time limits of database clients: on a busy machine this process may not run for seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.storage.database._IDLE_TRANSACTION_TIMEOUT_MS", 60_000)
        for limit in (
            "database._CONNECT_TIMEOUT_S",
            "database._POOL_WAIT_S",
            "direct_pool._CONNECT_TIMEOUT_S",
            "direct_pool._POOL_WAIT_S",
        ):
            patch.setattr(f"app.storage.{limit}", 60)
        for limit in ("WRITE_TIMEOUT", "EVICT_TIMEOUT", "FINAL_WRITE_TIMEOUT"):
            patch.setattr(f"app.storage.reply_cache._{limit}_S", 60.0)
        for limit in ("_FIRST_REQUEST_S", "_WAIT_S"):
            patch.setattr(f"app.storage.provider_status.{limit}", 60.0)
        yield


@functools.cache
def _shared_database(postgres_url: str) -> str:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE shared TEMPLATE {_TEMPLATE}")
    return _named(postgres_url, "shared")


@pytest.fixture
def database_url(postgres_url: str) -> Iterator[str]:
    """Return the URL of an empty, migrated database. The tests of a process use it in turn."""
    url = _shared_database(postgres_url)
    yield url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # so that nothing forbids to remove rows
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        used = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' "
            "AND pg_relation_size(oid) > 0 AND relname NOT IN ('alembic_version', 'queue_migrations')"
        ).fetchall()
        if used:
            connection.execute(f"TRUNCATE {', '.join(name for (name,) in used)} RESTART IDENTITY CASCADE")


@pytest.fixture
def fresh_database_url(postgres_url: str) -> Iterator[str]:
    """Return the URL of a migrated database for this test only, which may change its schema."""
    name = f"test_{next(_names)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
    yield _named(postgres_url, name)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connect_database(database_url) as database:
        yield database


@pytest.fixture
async def rig(database: Database) -> AsyncIterator[Rig]:
    """Intake, queue and control on the database of the test."""
    async with Rig.opened(database) as rig:
        yield rig
