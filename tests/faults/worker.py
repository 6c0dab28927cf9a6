"""A worker as a process that may be killed at any moment: the real service, pages by heart and a stand-in model."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from app.engine.runtime import Runtime
from app.observability.metrics import Metrics
from app.server.application import create_app
from app.service import OpenRuntime, open_service
from app.settings import Settings
from app.storage.database import Database
from tests.fakes.runtimes import scripted_runtime
from tests.fakes.settings import settings_for_tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a worker is to be. ``dies_before_rows``: it kills itself when it has stored a page's bodies, not its row.

    With ``socket`` it is no worker but serves the API there, and ``dies_at`` its first submission: at the "request", or
    at the "response", when all is stored and nobody was told.
    """

    judges: str
    settings: Mapping[str, Any]
    pages: Mapping[str, str] = field(default_factory=dict)
    kept: str | None = None
    jobs: int = 4
    dies_before_rows: bool = False
    socket: str | None = None
    dies_at: str | None = None


async def live(order: Order) -> None:
    """Work, or serve, until killed."""
    settings = settings_for_tests(**order.settings)
    opened = scripted_runtime(Path(order.judges), order.pages, kept=None if order.kept is None else Path(order.kept))
    if order.socket is not None:
        app = create_app(settings, workers=0, runtime=opened)
        async with app.router.lifespan_context(app):
            await uvicorn.Server(uvicorn.Config(dying(app, order.dies_at), uds=order.socket, lifespan="off")).serve()
        return
    runtime = dying_before_rows(opened) if order.dies_before_rows else opened
    async with open_service(settings, concurrency=order.jobs, metrics=Metrics(), runtime=runtime):
        await asyncio.Event().wait()


def dying(app: Any, at: str | None) -> Any:
    """The application, dead at its first submission."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def deadly(scope: Any, receive: Any, send: Any) -> None:
        submits = scope["type"] == "http" and scope["method"] == "POST"

        async def sending(message: Any) -> None:
            if submits and at == "response":
                die()
            await send(message)

        if submits and at == "request":
            die()
        await app(scope, receive, sending)

    return deadly


def dying_before_rows(opened: OpenRuntime) -> OpenRuntime:
    """A runtime whose pages never get as far as the database."""

    class Deadly:
        """In place of the cache of pages: captures, and is dead before anybody hears of it."""

        def __init__(self, runtime: Runtime) -> None:
            self._runtime = runtime

        async def get(self, url: str, **options: Any) -> Any:
            await self._runtime.blobs.put(b"half a capture", "text/plain")
            os.kill(os.getpid(), signal.SIGKILL)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._runtime.pages, name)

    @asynccontextmanager
    async def deadly(settings: Settings, database: Database) -> AsyncIterator[Runtime]:
        async with opened(settings, database) as runtime:
            object.__setattr__(runtime, "pages", Deadly(runtime))
            yield runtime

    return deadly
