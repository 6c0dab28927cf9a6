"""Folder of a service, a small site on loopback, and the port of the demo website."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.folders import service_folder
from tests.fakes.loop_thread import entered_in_thread
from tests.fakes.processes import kill_processes_of
from tests.standin.web import Reply, StandInWeb

PAGE = "<h1>Sky</h1><p>The sky is blue on most days, and this is a page about it and nothing else.</p>"
COOKIE = "canary-cookie-7d1f0b2a"


@pytest.fixture
def service_home() -> Iterator[Path]:
    """Folder for a service, which the account of the database server can enter. It is removed with its processes."""
    folder = service_folder("assay-acceptance-")
    yield folder
    kill_processes_of(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sky() -> Iterator[str]:
    """URL of a site with one page, which sets a cookie."""
    headers = {"Content-Type": "text/html; charset=utf-8", "Set-Cookie": f"session={COOKIE}; Path=/"}
    with entered_in_thread(site := StandInWeb(default_answer=Reply(headers=headers, body=PAGE.encode()))):
        yield site.url("")


@pytest.fixture(scope="module")
def demo_port() -> Iterator[None]:
    """Wait until no other test process uses the port of the demo website, which the shipped answers contain."""
    with (Path(tempfile.gettempdir()) / f"assay-demo-port-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
