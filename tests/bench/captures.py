"""Captures plain local pages, ten at once, then one by one for the CPU time of a page."""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random

from cache.backends.patchright import BrowserCapturer
from cache.backends.router import RoutedCapturer
from cache.blobs import BlobStore
from cache.capture_index import FolderIndex
from cache.egress.proxy import EgressProxy
from cache.pages import PageCache
from tests.bench.model import ROOT
from tests.bench.pages import prose
from tests.bench.watching import family_cpu_s
from tests.fakes.sandbox import installed_browser, is_sandbox_missing
from tests.standin.web import Reply, StandInWeb

PAGES = 60
DIFFERENT = 10
AT_ONCE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Captures:
    """``wall_s`` includes the start of the browser. ``good`` pages became evidence.

    ``cpu_s``: median CPU time of a page, in all processes.
    """

    wall_s: float
    good: int
    browser: str
    cpu_s: float

    @property
    def per_minute(self) -> float:
        return 60 * self.good / self.wall_s


def measure() -> Captures:
    """Capture in a new process.

    Raises:
        RuntimeError: The capture failed; the message contains its output.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.captures"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"capturing failed:\n{done.stderr[-4000:]}")
    return Captures(**json.loads(done.stdout.splitlines()[-1]))


async def _median_cpu_s(capture: Callable[[str], Awaitable[object]], urls: Iterable[str]) -> float:
    """Return the median CPU time of a page, in all processes. Pages are captured one by one in a running browser."""
    times = []
    for url in urls:
        before = family_cpu_s()
        await capture(url)
        times.append(family_cpu_s() - before)
    return statistics.median(times)


async def _capture_all(executable: Path, work: Path, *, unsandboxed: bool) -> Captures:
    logging.disable(logging.INFO)
    site = {f"/page-{number}": Reply.html(_page(number % DIFFERENT)) for number in range(PAGES)}
    async with StandInWeb(site) as web, EgressProxy(frozenset({web.host_port})) as proxy:
        capturer = BrowserCapturer(
            executable, proxy, semaphore=asyncio.Semaphore(AT_ONCE), allow_unsandboxed=unsandboxed
        )
        index = await FolderIndex.open(work / "captures")
        urls = [web.url(path) for path in site]
        routed = RoutedCapturer(capturer, pages_per_host=AT_ONCE)
        cache = PageCache(routed, BlobStore.open((work / "blobs").as_uri()), index)
        try:
            began = time.perf_counter()
            seen = await asyncio.gather(*(cache.get(url) for url in urls))
            wall_s = time.perf_counter() - began
            cpu_s = await _median_cpu_s(partial(cache.get, refresh=True), urls[:DIFFERENT])
        finally:
            await cache.aclose()
    return Captures(
        wall_s=wall_s,
        good=sum(each.is_evidence for each in seen),
        browser=executable.name,
        cpu_s=cpu_s,
    )


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
