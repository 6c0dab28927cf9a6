"""The real web server for an application, on a free port in a separate thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from app.server.application import server_config


class _Server(uvicorn.Server):
    """Server that signals when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve the application with its lifespan during the block; yield its URL."""
    ready, stop, failed = threading.Event(), threading.Event(), []
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
        listener.setblocking(False)
        port = int(listener.getsockname()[1])
        web = _Server(server_config(app, host="127.0.0.1", port=port), ready)

        async def serve() -> None:
            async with app.router.lifespan_context(app):
                serving = asyncio.create_task(web.serve(sockets=[listener]))
                await asyncio.to_thread(stop.wait)
                web.should_exit = True
                await serving

        def run() -> None:
            try:
                asyncio.run(serve())
            except BaseException as error:
                failed.append(error)
                raise
            finally:
                ready.set()

        thread = threading.Thread(target=run, name="served application")
        thread.start()
        try:
            if not ready.wait(240) or failed:
                raise AssertionError(f"the application did not start: {failed}")
            yield f"http://127.0.0.1:{port}"
        finally:
            stop.set()
            thread.join()
