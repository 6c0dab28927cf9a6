"""The door to PostgreSQL: where it is, opened, migrated, and its faults in our words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.errors import WrongSettings
from app.settings import Settings
from app.storage.direct import DISK_FULL, DirectConnection, DirectConnections
from app.storage.embedded import EmbeddedPostgres
from app.storage.errors import DatabaseUnavailable, StorageFull
from app.storage.migrate import migrate

_POOL_SIZE = 10
_POOL_OVERFLOW = 10
_POOL_WAIT_S = 5.0
_IDLE_MS = 3000
_CONNECT_S = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database. ``exclusive``: no other live process used it when we opened it."""

    url: str
    """``postgresql://...`` as libpq reads it; may hold a password."""
    engine: AsyncEngine
    direct: DirectConnections
    exclusive: bool = False

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """A transaction: committed at the end of the block, rolled back when it raises.

        Raises:
            DatabaseUnavailable: the server cannot be reached or went away meanwhile.
        """
        try:
            async with self.engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == DISK_FULL:
                raise StorageFull("the database has no room left on its disk") from error
            if error.connection_invalidated or _is_lost(error):
                raise DatabaseUnavailable(f"the database does not answer: {type(error.orig).__name__}") from error
            raise
        except PoolTimeout as error:
            raise DatabaseUnavailable("all database connections are busy") from error

    @asynccontextmanager
    async def quickly(self) -> AsyncIterator[DirectConnection]:
        """A connection for what is asked most often; each statement is a transaction of its own.

        Raises:
            DatabaseUnavailable: the server cannot be reached or went away meanwhile.
        """
        async with self.direct.one() as connection:
            yield connection

    async def ping(self) -> None:
        """Raises DatabaseUnavailable when a trivial query cannot be answered."""
        async with self.begin() as connection:
            await connection.execute(text("SELECT 1"))


def _is_lost(error: DBAPIError) -> bool:
    """Whether the server, and not the statement, is at fault (class 08, 53, 57 or no state at all)."""
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        return type(error.orig).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
    return str(state)[:2] in ("08", "53", "57", "58")


@asynccontextmanager
async def open_database(settings: Settings, *, migrated: bool = True) -> AsyncIterator[Database]:
    """The database of ASSAY_DATABASE_URL, else the private one in the data folder; ``migrated`` unless told otherwise.

    Raises:
        WrongSettings, DatabaseUnavailable, DatabaseTooNew, DataFolderRefused.
    """
    async with AsyncExitStack() as stack:
        exclusive = False
        if settings.database_url is not None:
            url = settings.database_url.get_secret_value()
        else:
            server = EmbeddedPostgres(settings.data_dir)
            url = await stack.enter_async_context(server.running())
            exclusive = server.was_alone
        database = await stack.enter_async_context(connect(url, exclusive=exclusive))
        if migrated:
            async with database.begin() as connection:
                await migrate(connection)
        yield database


@asynccontextmanager
async def connect(url: str, *, exclusive: bool = False) -> AsyncIterator[Database]:
    """An engine on ``url``; its connections are closed at the end of the block."""
    parsed = _with_session_limits(_parse(url))
    engine = create_async_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_size=_POOL_SIZE,
        max_overflow=_POOL_OVERFLOW,
        pool_timeout=_POOL_WAIT_S,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={"connect_timeout": _CONNECT_S},
    )
    place, _, options = parsed.set(drivername="postgresql").render_as_string(hide_password=False).partition("?")
    # libpq reads a plus sign as such, where SQLAlchemy means a space.
    libpq = f"{place}?{options.replace('+', '%20')}"
    try:
        async with DirectConnections(libpq).opened() as direct:
            yield Database(url=libpq, engine=engine, direct=direct, exclusive=exclusive)
    finally:
        await engine.dispose()


def _with_session_limits(url: URL) -> URL:
    """A process that falls asleep in a transaction, or whose machine is lost, must not keep its locks for ever."""
    given = url.query.get("options", "")
    options = given if isinstance(given, str) else " ".join(given)
    limit = f"-cidle_in_transaction_session_timeout={_IDLE_MS}"
    return url.update_query_dict({"options": f"{limit} {options}".strip()})


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise WrongSettings("ASSAY_DATABASE_URL is not a database URL") from None
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise WrongSettings("ASSAY_DATABASE_URL must be postgresql://user:password@host/database")
    return parsed
