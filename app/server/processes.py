"""The two programs that stay, from their start to a stop by signal: the service, and a worker without HTTP.

The web server is given no say over signals and start-up: so why the service cannot start reaches the caller as the
error it is, HTTP ends after the workers have drained, and SIGTERM is a normal end.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import uvicorn

from app.errors import WrongSettings
from app.feature import job_runners
from app.features import FEATURES
from app.observability.metrics import Metrics
from app.server.application import create_app, server_config
from app.service import open_service
from app.settings import Settings
from judges.gc_tuning import leave_out_what_is_loaded

_STOPPING = (signal.SIGTERM, signal.SIGINT)


async def serve(
    settings: Settings, listener: socket.socket, *, host: str, workers: int | None, ready: Callable[[], None]
) -> None:
    """Serve HTTP on ``listener`` with embedded workers until SIGTERM or SIGINT; ``ready`` is called once it answers.

    Raises:
        WrongSettings, StorageError, CacheError, JudgeError: it cannot be started.
    """
    port = int(listener.getsockname()[1])
    app = create_app(settings, host=host, workers=workers)
    web = _Server(server_config(app, host=host, port=port), ready)
    async with _stop_signal() as stop, app.router.lifespan_context(app):
        leave_out_what_is_loaded()
        serving = asyncio.create_task(web.serve(sockets=[listener]), name="http")
        stopped = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            # Who asks meanwhile is told that this is no place for new work, and still how the old one goes on.
            await app.state.service.drain()
        finally:
            stopped.cancel()
            web.should_exit = True
            await serving


async def work(settings: Settings, *, jobs: int, ready: Callable[[], None]) -> None:
    """Judge up to ``jobs`` answers side by side until SIGTERM or SIGINT.

    Raises:
        WrongSettings, StorageError, CacheError, JudgeError: it cannot be started.
    """
    metrics = Metrics()
    runners = job_runners(FEATURES)
    with _figures(metrics, settings.metrics_bind):
        async with (
            _stop_signal() as stop,
            open_service(settings, concurrency=jobs, metrics=metrics, runners=runners) as service,
        ):
            leave_out_what_is_loaded()
            ready()
            await stop.wait()
            await service.drain()


@contextlib.contextmanager
def _figures(metrics: Metrics, bind: str) -> Iterator[None]:
    """Answer Prometheus at ``bind`` (host:port; empty: nowhere) during the block.

    Raises:
        WrongSettings: nothing can listen there.
    """
    if not bind:
        yield
        return
    host, _, port = bind.rpartition(":")
    try:
        end = metrics.serve(host, int(port))
    except OSError as error:
        raise WrongSettings(f"ASSAY_METRICS_BIND={bind}: {error.strerror}") from error
    try:
        yield
    finally:
        end()


@contextlib.asynccontextmanager
async def _stop_signal() -> AsyncIterator[asyncio.Event]:
    """An event that the first SIGTERM or SIGINT sets; a second one cancels what is still going on."""
    stop = asyncio.Event()
    loop, program = asyncio.get_running_loop(), asyncio.current_task()

    def asked() -> None:
        if stop.is_set() and program is not None:
            program.cancel()
        stop.set()

    for number in _STOPPING:
        loop.add_signal_handler(number, asked)
    try:
        yield stop
    finally:
        for number in _STOPPING:
            loop.remove_signal_handler(number)


class _Server(uvicorn.Server):
    """Leaves signals to the program it is part of, and says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
