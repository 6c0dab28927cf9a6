"""Captures a minute of plain local pages, ten at once, and the memory used with the browser.

The child process captures; the parent measures the memory of all processes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import psutil

from cache.backends.patchright import BrowserCapturer
from cache.backends.router import RoutedCapturer
from cache.blobs import BlobStore
from cache.capture_index import FolderIndex
from cache.egress.proxy import EgressProxy
from cache.pages import PageCache
from tests.bench.bare_browser import per_minute
from tests.bench.model import ROOT
from tests.bench.pages import prose
from tests.fakes.sandbox import installed_browser, is_sandbox_missing
from tests.standin.web import Reply, StandInWeb

PAGES = 60
DIFFERENT = 10
AT_ONCE = 10
_WATCH_S = 1.0
"""Interval of the memory samples; sampling uses processor time itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captures:
    """``wall_s`` includes the start of the browser. ``good`` pages became evidence. ``peak_bytes`` counts shared
    memory once.

    ``bare_per_minute``: throughput of a bare browser with the same pages on this machine, in the same run.
    """

    wall_s: float
    good: int
    browser: str
    bare_per_minute: float
    peak_bytes: int = 0

    @property
    def per_minute(self) -> float:
        return 60 * self.good / self.wall_s


def measure() -> Captures:
    """Capture in a new process.

    Raises:
        RuntimeError: The capture failed; the message contains its output.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.captures"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peak = 0
    while child.poll() is None:
        peak = max(peak, _family_bytes(child.pid))
        time.sleep(_WATCH_S)
    said, complaint = child.communicate()
    if child.returncode:
        raise RuntimeError(f"capturing failed:\n{complaint[-4000:]}")
    return Captures(**json.loads(said.splitlines()[-1]) | {"peak_bytes": peak})


def _family_bytes(pid: int) -> int:
    """Return the memory of a process and all below it; shared memory is counted once."""
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    return sum(map(_own_bytes, family))


def _own_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


async def _capture_all(executable: Path, work: Path, *, unsandboxed: bool) -> Captures:
    logging.disable(logging.INFO)
    site = {f"/page-{number}": Reply.html(_page(number % DIFFERENT)) for number in range(PAGES)}
    async with StandInWeb(site) as web, EgressProxy(frozenset({web.host_port})) as proxy:
        capturer = BrowserCapturer(
            executable, proxy, semaphore=asyncio.Semaphore(AT_ONCE), allow_unsandboxed=unsandboxed
        )
        index = await FolderIndex.open(work / "captures")
        routed = RoutedCapturer(capturer, pages_per_host=AT_ONCE)
        cache = PageCache(routed, BlobStore.open((work / "blobs").as_uri()), index)
        try:
            began = time.perf_counter()
            seen = await asyncio.gather(*(cache.get(web.url(path)) for path in site))
            wall_s = time.perf_counter() - began
        finally:
            await cache.aclose()
        bare = await per_minute(executable, [web.url(path) for path in site], AT_ONCE)
    good = sum(each.is_evidence for each in seen)
    return Captures(wall_s=wall_s, good=good, browser=executable.name, bare_per_minute=bare)


def _page(number: int) -> str:
    """Return plain HTML; every fifth page is long."""
    random = Random(f"page {number}")
    paragraphs = "".join(
        f"<h2>{number}.{place}</h2><p>{prose(random, 600)}</p>" for place in range(80 if number % 5 == 0 else 12)
    )
    return f"<!doctype html><title>Page {number}</title><h1>Page {number}</h1>{paragraphs}"


if __name__ == "__main__":
    program = installed_browser()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as place:
        print(json.dumps(asdict(asyncio.run(_capture_all(program, Path(place), unsandboxed=is_sandbox_missing())))))
