"""Database and runtime of commands that work without a server. The service need not run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from app.console import event_loop
from app.engine.runtime import Runtime, open_runtime
from app.observability.logs import Redactor, configure_logging
from app.settings import Settings, load_settings
from app.storage.database import Database, has_database, open_database

T = TypeVar("T")


def run_in_database(work: Callable[[Settings, Database], Awaitable[T]], *, migrated: bool = True) -> T:
    """Open the database of the service, run ``work`` and return its result. Logs only warnings, to stderr."""
    settings = load_settings()
    configure_logging(Redactor(settings.secrets), level="warning")

    async def run() -> T:
        async with open_database(settings, migrated=migrated) as database:
            return await work(settings, database)

    return event_loop.run(run())


@asynccontextmanager
async def open_command_runtime(settings: Settings, *, shared: bool) -> AsyncIterator[Runtime]:
    """Open the runtime of a command.

    ``shared`` also uses the database of the service if there is one, so that workers find the pages that the command
    stores.
    """
    async with AsyncExitStack() as stack:
        database = None
        if shared and has_database(settings):
            database = await stack.enter_async_context(open_database(settings))
        yield await stack.enter_async_context(open_runtime(settings, database, record_in_folder=True))
