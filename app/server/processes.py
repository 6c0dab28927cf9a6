"""Entry points of the long-running processes: the HTTP service and the worker without HTTP.

This module, not Uvicorn, handles signals and the lifespan of the application. Startup errors therefore reach the caller
unchanged, HTTP stops only after the workers have drained, and SIGTERM is a normal exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator

from app.errors import InvalidSettings
from app.feature import contributions
from app.features import FEATURES
from app.interruption import INTERRUPTION
from app.observability.metrics import Metrics
from app.service import open_service
from app.settings import Settings
from judges.gc_tuning import freeze_loaded_objects


async def run_server(
    settings: Settings, listener: socket.socket, *, host: str, workers: int | None, on_ready: Callable[[], None]
) -> None:
    """Serve HTTP on ``listener``, with embedded workers, until SIGTERM.

    ``on_ready`` is called when the server accepts requests.

    Raises:
        InvalidSettings, StorageError, CacheError, JudgeError: The service cannot start.
    """
    from app.server.application import HttpServer, create_app, server_config  # not for workers: imports FastAPI

    port = int(listener.getsockname()[1])
    app = create_app(settings, host=host, workers=workers)
    web = HttpServer(server_config(app, host=host, port=port, trusted_proxies=settings.trusted_proxies), on_ready)
    async with _stop_signal() as stop, app.router.lifespan_context(app):
        freeze_loaded_objects()
        serving = asyncio.create_task(web.serve(sockets=[listener]), name="http")
        stopped = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            # During the drain, HTTP still serves job states, and ``/readyz`` reports 503.
            await app.state.service.drain()
        finally:
            stopped.cancel()
            web.should_exit = True
            await serving


async def run_worker(settings: Settings, *, jobs: int, on_ready: Callable[[], None]) -> None:
    """Run a worker with up to ``jobs`` concurrent jobs until SIGTERM.

    Raises:
        InvalidSettings, StorageError, CacheError, JudgeError: The worker cannot start.
    """
    metrics = Metrics()
    added = contributions(FEATURES)
    with _metrics_server(metrics, settings.metrics_bind):
        async with (
            _stop_signal() as stop,
            open_service(settings, concurrency=jobs, metrics=metrics, listens=False, added=added) as service,
        ):
            freeze_loaded_objects()
            on_ready()
            await stop.wait()
            await service.drain()


@contextlib.contextmanager
def _metrics_server(metrics: Metrics, bind: str) -> Iterator[None]:
    """Serve metrics at ``bind`` (host:port; empty: disabled) during the block.

    Raises:
        InvalidSettings: The server cannot listen on that address.
    """
    if not bind:
        yield
        return
    host, _, port = bind.rpartition(":")
    try:
        end = metrics.serve(host, int(port))
    except OSError as error:
        message = f"ASSAY_METRICS_BIND: cannot listen on {bind}: {error.strerror}; choose a free port of this machine"
        raise InvalidSettings(message) from error
    try:
        yield
    finally:
        end()


@contextlib.asynccontextmanager
async def _stop_signal() -> AsyncIterator[asyncio.Event]:
    """Yield an event that the first SIGTERM sets. A second one interrupts the process, as Ctrl-C does at any time."""
    stop = asyncio.Event()
    loop, main_task = asyncio.get_running_loop(), asyncio.current_task()

    def on_signal() -> None:
        if stop.is_set() and INTERRUPTION.begin(signal.SIGTERM) and main_task is not None:
            main_task.cancel()
        stop.set()

    loop.add_signal_handler(signal.SIGTERM, on_signal)
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
