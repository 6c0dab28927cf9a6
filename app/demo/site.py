"""Server of the demo website on loopback.

The shipped answers cite ``http://127.0.0.1:8765/...``, so the port is fixed. Captures can reach it because the demo
adds it to the egress allow-list.
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
    """Server that ``async with DemoSite() as site:`` runs at ``site.url``. Tests use another ``port`` (0: any)."""

    def __init__(self, port: int = PORT) -> None:
        self._wanted_port = port
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.port = port

    @property
    def url(self) -> str:
        """URL of the site, without a trailing slash."""
        return f"http://{HOST}:{self.port}"

    @property
    def egress_allow(self) -> str:
        """Entry for ``ASSAY_EGRESS_ALLOW`` that allows captures of the site."""
        return f"{HOST}:{self.port}"

    async def __aenter__(self) -> DemoSite:
        """Start the server.

        Raises:
            DemoPortTaken: Another program uses the port.
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
        self._server.force_exit = True  # do not wait for keep-alive connections of browsers
        await self._serving


class _Server(uvicorn.Server):
    """Server that installs no signal handlers, because the program that embeds it has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bound(port: int) -> socket.socket:
    """Return a socket that listens on a loopback port. Early connections wait in its backlog."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        why = "another program uses it" if error.errno == errno.EADDRINUSE else error.strerror
        raise DemoPortTaken(
            f"cannot open port {port} of {HOST}: {why}. The answers of the demo cite pages at this address. "
            f"Stop the program that uses it (find it with `ss -ltnp 'sport = :{port}'`) and start the demo again."
        ) from error
    listener.setblocking(False)
    return listener
