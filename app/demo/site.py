"""Serves the demo's web site on loopback for as long as a demo runs.

The shipped answers cite ``http://127.0.0.1:8765/...`` literally, so the port is part of the answers and cannot be
chosen freely. Captures reach it because the demo names it in the egress allow-list, like any other private address.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Iterator
from types import TracebackType

import uvicorn

from app.demo.errors import DemoPortTaken
from app.demo.pages import demo_app

HOST = "127.0.0.1"
PORT = 8765
"""The port in every URL of ``answers/examples``."""


class DemoSite:
    """``async with DemoSite() as site:`` serves the pages at ``site.url``; another ``port`` (0: any) is for tests."""

    def __init__(self, port: int = PORT) -> None:
        self._wanted_port = port
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.port = port

    @property
    def url(self) -> str:
        """Where the site is, without a slash at the end."""
        return f"http://{HOST}:{self.port}"

    @property
    def egress_allow(self) -> str:
        """The entry that captures need in ``ASSAY_EGRESS_ALLOW``."""
        return f"{HOST}:{self.port}"

    async def __aenter__(self) -> DemoSite:
        """Bind and serve.

        Raises:
            DemoPortTaken: another program has the port.
        """
        listener = _bound(self._wanted_port)
        self.port = listener.getsockname()[1]
        self._server = _Server(uvicorn.Config(demo_app(), log_config=None, access_log=False, lifespan="off"))
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="demo-site")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        self._server.force_exit = True  # a browser may keep its connection open for long
        await self._serving


class _Server(uvicorn.Server):
    """A server inside somebody else's program: signals stay with that program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bound(port: int) -> socket.socket:
    """A socket that listens on ``port`` of loopback; whoever connects early waits in its queue."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        why = "another program uses it" if error.errno == errno.EADDRINUSE else error.strerror
        raise DemoPortTaken(
            f"port {port} of {HOST} cannot be had: {why}. The demo's answers cite pages at this address; "
            f"stop that program (`ss -ltnp 'sport = :{port}'` shows it) and start the demo again."
        ) from error
    listener.setblocking(False)
    return listener
