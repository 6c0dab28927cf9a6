"""Server of the demo website on loopback.

The shipped answers cite ``http://127.0.0.1:8765/...``, so the port is fixed. Captures can reach it because the demo
adds it to the egress allow-list.

Besides ordinary pages it has the difficult cases of real sites: content that loads late or on scrolling, a consent
banner, a login wall, a PDF, and a 404 page.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import httpx
import uvicorn
from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from app.errors import AppError

HOST = "127.0.0.1"
PORT = 8765
"""The port in every URL of ``answers/examples``."""


class DemoSite:
    """Server that ``async with DemoSite() as site:`` runs at ``site.url``.

    With ``reuse``, a site that another process serves there, such as ``scripts/demo_site.py``, is used instead. Tests
    use another ``port`` (0: any), screenshots another loopback address (``host``).
    """

    def __init__(self, port: int = PORT, *, host: str = HOST, reuse: bool = False) -> None:
        self._host = host
        self._wanted_port = port
        self._reuse = reuse
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.port = port

    @property
    def url(self) -> str:
        """URL of the site, without a trailing slash."""
        return f"http://{self._host}:{self.port}"

    @property
    def egress_allow(self) -> str:
        """Entry for ``ASSAY_EGRESS_ALLOW`` that allows captures of the site."""
        return f"{self._host}:{self.port}"

    async def __aenter__(self) -> DemoSite:
        """Start the server.

        Raises:
            DemoPortTaken: Another program uses the port.
        """
        try:
            listener = _bound(self._host, self._wanted_port)
        except DemoPortTaken:
            if self._reuse and await _serves_the_site(self.url):
                return self
            raise
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


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a loopback port. Early connections wait in its backlog."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = "another program uses it" if error.errno == errno.EADDRINUSE else error.strerror
        raise DemoPortTaken(
            f"cannot open port {port} of {host}: {reason}. The answers of the demo cite pages at this address. "
            f"Stop the program that uses it (find it with `ss -ltnp 'sport = :{port}'`) and run the command again."
        ) from error
    listener.setblocking(False)
    return listener


async def _serves_the_site(url: str) -> bool:
    """Return whether the server at ``url`` has the first page of the demo website."""
    page = _page_templates().get_template("index.html").render().encode()
    async with httpx.AsyncClient(trust_env=False, timeout=5.0) as client:
        try:
            async with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as reply:
                content = b""
                async for chunk in reply.aiter_raw():
                    content += chunk
                    if len(content) > len(page):
                        return False
        except httpx.HTTPError:
            return False
    return content == page


class DemoPortTaken(AppError):
    """The port in the URLs of the shipped answers cannot be opened. The message contains the remedy."""


SITE_FOLDER = Path(__file__).parent / "site"
MEMBERS_ONLY = "/museum/members"
_PAGE_NAME = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)*")


def _page_templates() -> Environment:
    return Environment(loader=FileSystemLoader(SITE_FOLDER), autoescape=True)


def demo_app() -> Starlette:
    """Create the application. ``/gauges/kestrel-4`` is ``site/gauges/kestrel-4.html`` inside ``site/_layout.html``."""
    templates = _page_templates()

    async def page(request: Request) -> Response:
        name = request.path_params["name"].rstrip("/") or "index"
        if _PAGE_NAME.fullmatch(name) and (SITE_FOLDER / f"{name}.html").is_file():
            return HTMLResponse(templates.get_template(f"{name}.html").render())
        return HTMLResponse(templates.get_template("not-found.html").render(), status_code=404)

    async def redirect_to_login(request: Request) -> Response:
        return RedirectResponse(f"/login?next={request.url.path}", status_code=303)

    async def reject_login(request: Request) -> Response:
        return RedirectResponse("/login", status_code=303)

    async def style(request: Request) -> Response:
        return FileResponse(SITE_FOLDER / "style.css", media_type="text/css")

    async def data_sheet(request: Request) -> Response:
        return FileResponse(SITE_FOLDER / "files" / "heron-2-data-sheet.pdf", media_type="application/pdf")

    return Starlette(
        routes=[
            Route("/style.css", style),
            Route("/files/heron-2-data-sheet.pdf", data_sheet),
            Route(MEMBERS_ONLY, redirect_to_login),
            Route("/login", reject_login, methods=["POST"]),
            Route("/{name:path}", page),
        ]
    )
