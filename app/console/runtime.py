"""Runtime of commands that work on stored pages without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from app.engine.runtime import Runtime, open_runtime
from app.settings import Settings
from app.storage.database import open_database


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


def has_database(settings: Settings) -> bool:
    """Return whether there is a database: a configured one, or the embedded one in the data folder."""
    return settings.database_url is not None or (settings.data_dir / "postgres").is_dir()
