"""Capture every page of the set, one after the other, and print outcome, seconds and CPU seconds of each.

Run ``python -m tests.page_shapes [name ...]``.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path

import psutil

from cache.backends.patchright import BrowserCapturer
from tests.fakes.sandbox import installed_browser, is_sandbox_missing
from tests.page_shapes.articles import ARTICLES
from tests.page_shapes.captured import faults, serve_shapes
from tests.page_shapes.loops import DOWN, ENDLESS, LOOPS, WAITING
from tests.page_shapes.lost import COVERED, NOTED, OVERLAYS
from tests.page_shapes.short import EMPTY, SHORT
from tests.page_shapes.varied import VARIED

SHAPES = {**SHORT, **EMPTY, **OVERLAYS, **COVERED, **NOTED, **ARTICLES, **VARIED, **DOWN, **LOOPS, **ENDLESS, **WAITING}


def _cpu_s() -> float:
    """Return CPU seconds of this process and of all running processes below it."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
        total += times.children_user + times.children_system if process is not own else 0.0
    return total


async def _main(program: Path, wanted: list[str], *, allow_unsandboxed: bool) -> None:
    print(f"{'page':26} {'outcome':10} {'s':>6} {'CPU s':>6}  faults and detail")
    taken: list[tuple[float, float]] = []
    wrong = found = all_shown = 0
    async with serve_shapes({name: SHAPES[name] for name in wanted or SHAPES}) as (proxy, urls):
        capturer = BrowserCapturer(
            program,
            proxy,
            semaphore=asyncio.Semaphore(1),
            pages_per_browser=10_000,
            allow_unsandboxed=allow_unsandboxed,
        )
        try:
            await capturer.start()
            for name, url in urls.items():
                began, cpu = time.monotonic(), _cpu_s()
                seen = await capturer.capture(url)
                taken.append((time.monotonic() - began, _cpu_s() - cpu))
                problems = faults(SHAPES[name], seen)
                wrong += bool(problems)
                if SHAPES[name].evidence:
                    text = " ".join(seen.text.split()) if seen.is_evidence else ""
                    all_shown += len(SHAPES[name].shown)
                    found += sum(each in text for each in SHAPES[name].shown)
                said = "; ".join([*problems[:2], f"({len(problems)})" * (len(problems) > 2), seen.detail])
                print(
                    f"{name:26} {seen.outcome.value:10} {taken[-1][0]:6.2f} {taken[-1][1]:6.2f}  {said[:150]}",
                    flush=True,
                )
        finally:
            await capturer.aclose()
    seconds, cpu_seconds = zip(*taken, strict=True)
    slowest = sorted(seconds)[int(0.95 * len(seconds))]
    print(f"{len(taken)} pages, {wrong} wrong; recall {found / max(1, all_shown):.4f}")
    print(f"median {statistics.median(seconds):.2f} s, {statistics.median(cpu_seconds):.2f} CPU s; p95 {slowest:.2f} s")


def _wanted(arguments: list[str]) -> list[str]:
    """Return the page names on the command line. Exit with a message if one is unknown."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.page_shapes",
        description="Capture pages of the set and print outcome, seconds and CPU seconds of each.",
    )
    parser.add_argument("names", nargs="*", metavar="name", help="name of a page (default: all pages)")
    wanted = list(dict.fromkeys(parser.parse_args(arguments).names))
    unknown = [name for name in wanted if name not in SHAPES]
    if unknown:
        parser.error(f"unknown page: {', '.join(unknown)}. Pages: {', '.join(SHAPES)}")
    return wanted


if __name__ == "__main__":
    wanted_pages = _wanted(sys.argv[1:])
    browser = installed_browser()
    if browser is None:
        sys.exit("No Chromium on this machine: run `make setup`.")
    asyncio.run(_main(browser, wanted_pages, allow_unsandboxed=is_sandbox_missing()))
