"""Capture every page of the set, one after the other, and print outcome, seconds and CPU seconds of each.

Run ``python -m tests.page_shapes [name ...]``.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

import psutil

from cache.backends.patchright import BrowserCapturer
from tests.fakes.sandbox import installed_browser, unsandboxed_here
from tests.page_shapes.articles import ARTICLES
from tests.page_shapes.captured import faults, served
from tests.page_shapes.loops import DOWN, LOOPS
from tests.page_shapes.lost import COVERED, NOTED, OVERLAYS
from tests.page_shapes.short import EMPTY, SHORT
from tests.page_shapes.varied import OPEN, VARIED


def _cpu_s() -> float:
    """CPU seconds of this process and of everything below it that still runs."""
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
    shapes = {**SHORT, **EMPTY, **OVERLAYS, **COVERED, **NOTED, **ARTICLES, **VARIED, **OPEN, **DOWN, **LOOPS}
    taken: list[tuple[float, float]] = []
    wrong = found = all_shown = 0
    async with served({name: shape for name, shape in shapes.items() if not wanted or name in wanted}) as (guard, urls):
        capturer = BrowserCapturer(
            program,
            guard,
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
                problems = faults(shapes[name], seen)
                wrong += bool(problems)
                if shapes[name].evidence:
                    text = " ".join(seen.text.split()) if seen.is_evidence else ""
                    all_shown += len(shapes[name].shown)
                    found += sum(each in text for each in shapes[name].shown)
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


if __name__ == "__main__":
    browser = installed_browser()
    if browser is None:
        sys.exit("No Chromium on this machine: run `make setup`.")
    asyncio.run(_main(browser, sys.argv[1:], allow_unsandboxed=unsandboxed_here()))
