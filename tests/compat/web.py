"""Small web server in a thread: pages by path, and a record of every request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Reply(NamedTuple):
    body: bytes
    type: str = "text/html; charset=utf-8"
    status: int = 200


class Request(NamedTuple):
    path: str
    query: dict[str, str]


class Web:
    """Running server. ``origin`` is its origin, ``requests`` the requests received."""

    def __init__(self, pages: Mapping[str, Reply | Callable[[Request], Reply]]) -> None:
        self.pages = dict(pages)
        self.requests: list[Request] = []
        self.origin = ""

    @property
    def host_port(self) -> str:
        """Return ``host:port``, the form used in allowlists."""
        return self.origin.removeprefix("http://")

    def reply(self, target: str) -> Reply:
        parts = urlsplit(target)
        request = Request(parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)))
        self.requests.append(request)
        page = self.pages.get(parts.path, Reply(b"<h1>Not found</h1>", status=404))
        return page(request) if callable(page) and not isinstance(page, Reply) else page


@contextmanager
def running_web(pages: Mapping[str, Reply | Callable[[Request], Reply]]) -> Iterator[Web]:
    web = Web(pages)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = web.reply(self.path)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.type)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:
            """Suppress the request log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.origin = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
