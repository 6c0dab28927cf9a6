"""Small site on loopback for browser tests, and the port of the demo website."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PAGE = "<h1>Sky</h1><p>The sky is blue on most days, and this is a page about it and nothing else.</p>"
COOKIE = "canary-cookie-7d1f0b2a"


class _Sky(BaseHTTPRequestHandler):
    """One page, which sets a cookie."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Set-Cookie", f"session={COOKIE}; Path=/")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def sky() -> Iterator[str]:
    """URL of the site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sky)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def demo_port() -> Iterator[None]:
    """Wait until no other test process uses the port of the demo website, which the shipped answers contain."""
    with (Path(tempfile.gettempdir()) / f"assay-demo-port-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
