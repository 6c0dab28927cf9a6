"""Database access: opening, migrating and connecting, with driver errors mapped to storage errors.

Our tables are migrated with Alembic, the job queue's tables with procrastinate's scripts. All migrations run in one
transaction under one lock. Many processes can start at once, and an interrupted migration is rolled back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from procrastinate.schema import SchemaManager
from sqlalchemy import Connection, column, insert, select, table, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.errors import InvalidSettings
from app.settings import DEFAULT_CONNECTIONS, Settings
from app.storage.direct_pool import DISK_FULL, DirectConnection, DirectPool
from app.storage.embedded import EmbeddedPostgres
from app.storage.errors import DatabaseUnavailable, OtherSchema, StorageFull, database_unavailable
from app.storage.tables import queue_migrations, schema_revision

_LOCK = 0x61737361  # "assa"
_log = structlog.get_logger(__name__)


_SCRIPTS = Path(__file__).with_name("migrations")
_VERSION_TABLE = "alembic_version"


async def migrate(connection: AsyncConnection) -> None:
    """Apply missing migrations. Call in a separate transaction.

    Raises:
        OtherSchema: Another version of assay has created or migrated the database.
    """
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if await _revision(connection) != await asyncio.to_thread(schema_revision):
        await connection.run_sync(_migrate_tables)
    await _migrate_queue(connection)


async def _revision(connection: AsyncConnection) -> str | None:
    """Return the revision that Alembic has recorded, or None in a new database."""
    has_table = await connection.execute(text("SELECT to_regclass(:name) IS NOT NULL"), {"name": _VERSION_TABLE})
    if not has_table.scalar_one():
        return None
    return (await connection.execute(select(column("version_num")).select_from(table(_VERSION_TABLE)))).scalar()


def _migrate_tables(connection: Connection) -> None:
    # Alembic takes a tenth of a second to import, and most processes find a current database.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    script = ScriptDirectory(str(_SCRIPTS))

    def steps(revision: Any, _context: Any) -> Any:
        try:
            revisions = script._upgrade_revs("head", revision)
        except CommandError as error:
            raise OtherSchema(
                f"The database was made by another version of assay (schema {', '.join(revision)}): start a new data "
                "folder with ASSAY_DATA_DIR, or an empty database with ASSAY_DATABASE_URL, or run that version"
            ) from error
        for step in revisions:
            _log.info("migrating database", step=str(step))
        return revisions

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, version_table=_VERSION_TABLE)
        environment.run_migrations()


async def _migrate_queue(connection: AsyncConnection) -> None:
    """Create procrastinate's schema, or apply the migration scripts that its newer release has added."""
    scripts = await asyncio.to_thread(_queue_scripts)
    known = set((await connection.execute(select(queue_migrations.c.name))).scalars())
    missing = [script for script in scripts if script.name not in known]
    if not known:
        await _run_script(connection, SchemaManager.get_schema())
    else:
        for script in missing:
            _log.info("migrating queue", step=script.name)
            await _run_script(connection, await asyncio.to_thread(script.read_text, "utf-8"))
    if missing:
        await connection.execute(insert(queue_migrations), [{"name": script.name} for script in missing])


def _queue_scripts() -> list[Path]:
    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))


async def _run_script(connection: AsyncConnection, script: str) -> None:
    # Use the driver directly: the script has several statements, and text that looks like bind parameters.
    raw = (await connection.get_raw_connection()).driver_connection
    assert raw is not None  # noqa: S101 - a checked-out connection has a driver connection
    await raw.execute(script)


_POOL_WAIT_S = 5.0
_LISTENERS = 2
"""Connections that wait for notifications: of the job queue and of the job events."""
_IDLE_TRANSACTION_TIMEOUT_MS = 6000
_CONNECT_TIMEOUT_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """Open database. ``exclusive``: no other process used it when it was opened."""

    url: str
    """``postgresql://...`` in libpq syntax. Can contain a password."""
    engine: AsyncEngine
    direct: DirectPool
    exclusive: bool = False

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """Run a transaction: commit at the end of the block, roll back if it raises.

        Raises:
            DatabaseUnavailable: The server cannot be reached, the connection was lost, or a deadlock ended the
                transaction.
            StorageFull: The server's disk is full.
        """
        try:
            async with self.engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == DISK_FULL:
                raise StorageFull("The disk of the database is full: free some space") from error
            if error.connection_invalidated or _is_lost(error):
                raise database_unavailable(error.orig or error) from error
            raise
        except PoolTimeout as error:
            raise DatabaseUnavailable("All database connections are busy: retry later") from error

    @asynccontextmanager
    async def pooled_connection(self) -> AsyncIterator[DirectConnection]:
        """Yield a pooled driver connection in autocommit mode, for the most frequent statements.

        Raises:
            DatabaseUnavailable: The server cannot be reached, or the connection was lost.
            StorageFull: The server's disk is full.
        """
        async with self.direct.connection() as connection:
            yield connection

    async def ping(self) -> None:
        """Run a trivial query.

        Raises:
            DatabaseUnavailable: The query failed.
        """
        async with self.begin() as connection:
            await connection.execute(text("SELECT 1"))


def _is_lost(error: DBAPIError) -> bool:
    """Return whether the server caused the error, not the statement (SQLSTATE class 08, 40, 53, 57 or 58, or none).

    Class 40: it rolled the transaction back because of others, for example to end a deadlock.
    """
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        return type(error.orig).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
    return str(state)[:2] in ("08", "40", "53", "57", "58")


def has_database(settings: Settings) -> bool:
    """Return whether there is a database: a configured one, or the embedded one in the data folder."""
    return settings.database_url is not None or (settings.data_dir / "postgres").is_dir()


@asynccontextmanager
async def open_database(settings: Settings, *, migrated: bool = True) -> AsyncIterator[Database]:
    """Open the database of ``ASSAY_DATABASE_URL``, or the embedded one in the data folder.

    ``migrated``: apply missing migrations.

    Raises:
        InvalidSettings, DatabaseUnavailable, OtherSchema, DataFolderRefused: The database cannot be opened.
    """
    async with AsyncExitStack() as stack:
        exclusive = False
        if settings.database_url is not None:
            url = settings.database_url.get_secret_value()
        else:
            server = EmbeddedPostgres(settings.data_dir)
            url = await stack.enter_async_context(server.running())
            exclusive = server.exclusive
        database = await stack.enter_async_context(
            connect_database(url, exclusive=exclusive, connections=settings.database_connections)
        )
        if migrated:
            async with database.begin() as connection:
                await migrate(connection)
        yield database


@asynccontextmanager
async def connect_database(
    url: str, *, exclusive: bool = False, connections: int = DEFAULT_CONNECTIONS
) -> AsyncIterator[Database]:
    """Connect to ``url`` during the block.

    ``connections`` is the maximum for this process, including those of its listeners. A quarter of the rest is kept
    open, and at most half of it is for the job queue and the statements that every request runs.
    """
    available = connections - _LISTENERS
    direct_connections = min(12, available // 2)
    parsed = _with_session_options(_parse(url))
    engine = create_async_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_size=available // 4,
        max_overflow=available - direct_connections - available // 4,
        pool_timeout=_POOL_WAIT_S,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"connect_timeout": _CONNECT_TIMEOUT_S},
    )
    address, _, options = parsed.set(drivername="postgresql").render_as_string(hide_password=False).partition("?")
    # SQLAlchemy encodes a space as a plus sign, which libpq does not decode.
    libpq = f"{address}?{options.replace('+', '%20')}"
    try:
        async with DirectPool(libpq, direct_connections).open() as direct:
            yield Database(url=libpq, engine=engine, direct=direct, exclusive=exclusive)
    finally:
        await engine.dispose()


def _with_session_options(url: URL) -> URL:
    """Limit idle transactions, so a suspended process or a lost machine does not keep its locks forever. Use UTC."""
    given = url.query.get("options", "")
    options = given if isinstance(given, str) else " ".join(given)
    limit = f"-cidle_in_transaction_session_timeout={_IDLE_TRANSACTION_TIMEOUT_MS}"
    return url.update_query_dict({"options": " ".join(filter(None, (limit, options, "-ctimezone=UTC")))})


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidSettings(
            "ASSAY_DATABASE_URL is not a valid URL: use postgresql://user:password@host/database"
        ) from None
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise InvalidSettings("ASSAY_DATABASE_URL must be postgresql://user:password@host/database")
    return parsed
