"""Direct database access for commands. The service need not run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.console import event_loop
from app.observability.logs import Redactor, configure_logging
from app.settings import Settings, load_settings
from app.storage.database import Database, open_database

T = TypeVar("T")


def run_in_database(work: Callable[[Settings, Database], Awaitable[T]], *, migrated: bool = True) -> T:
    """Open the database of the service, run ``work`` and return its result. Logs only warnings, to stderr."""
    settings = load_settings()
    configure_logging(Redactor(settings.secrets), level="warning")

    async def run() -> T:
        async with open_database(settings, migrated=migrated) as database:
            return await work(settings, database)

    return event_loop.run(run())
