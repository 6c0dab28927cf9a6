"""Worker process that may be killed at any time: the real service with fixed pages and a stand-in model."""

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
class WorkerOptions:
    """Configuration of a worker. ``dies_before_rows``: it kills itself after it stored the bodies of a page, before
    the row.

    With ``socket`` it serves the API there instead of working. ``dies_at`` kills it at its first submission: at the
    "request", or at the "response", when everything is stored and no response was sent.
    """

    judges: str
    settings: Mapping[str, Any]
    pages: Mapping[str, str] = field(default_factory=dict)
    data_folder: str | None = None
    jobs: int = 4
    dies_before_rows: bool = False
    socket: str | None = None
    dies_at: str | None = None
    locks_captures: bool = False


async def run_until_killed(options: WorkerOptions) -> None:
    """Serve until killed, or work until terminated or killed."""
    settings = settings_for_tests(**options.settings)
    opened = scripted_runtime(
        Path(options.judges),
        options.pages,
        data_folder=None if options.data_folder is None else Path(options.data_folder),
        locks_captures=options.locks_captures,
    )
    if options.socket is not None:
        app = create_app(settings, workers=0, runtime=opened)
        async with app.router.lifespan_context(app):
            await uvicorn.Server(
                uvicorn.Config(kill_at_submission(app, options.dies_at), uds=options.socket, lifespan="off")
            ).serve()
        return
    runtime = kill_before_rows(opened) if options.dies_before_rows else opened
    async with open_service(settings, concurrency=options.jobs, metrics=Metrics(), runtime=runtime):
        stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
        await stopping.wait()


def kill_at_submission(app: Any, at: str | None) -> Any:
    """Return an application that kills its process at the first submission."""

    def kill_self() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def killing_app(scope: Any, receive: Any, send: Any) -> None:
        submits = scope["type"] == "http" and scope["method"] == "POST"

        async def sending(message: Any) -> None:
            if submits and at == "response":
                kill_self()
            await send(message)

        if submits and at == "request":
            kill_self()
        await app(scope, receive, sending)

    return killing_app


def kill_before_rows(opened: OpenRuntime) -> OpenRuntime:
    """Return a runtime that kills its process before it stores the row of a page."""

    class Deadly:
        """Page cache that stores a body and then kills its process."""

        def __init__(self, runtime: Runtime) -> None:
            self._pages, self._blobs = runtime.pages, runtime.blobs

        async def get(self, url: str, **options: Any) -> Any:
            await self._blobs.put(b"half a capture", "text/plain")
            os.kill(os.getpid(), signal.SIGKILL)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._pages, name)

    @asynccontextmanager
    async def killing_runtime(settings: Settings, database: Database) -> AsyncIterator[Runtime]:
        async with opened(settings, database) as runtime:
            object.__setattr__(runtime, "pages", Deadly(runtime))
            yield runtime

    return killing_runtime
