"""Rows that need a browser: speed of captures."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import bare_browser, captures
from tests.bench.row import MIB, Row
from tests.fakes.sandbox import installed_browser

PAGES_PER_MIN = 250


def capture() -> Iterator[Row]:
    if installed_browser() is None:
        yield Row(what="capture", toolkit="76.6 pages/min", target=f">= {PAGES_PER_MIN}", ours="no browser", met=None)
        return
    seen = captures.measure()
    yield Row(
        what=f"capture, {captures.PAGES} plain local pages, {captures.AT_ONCE} at once",
        toolkit="76.6 pages/min",
        target=f">= {PAGES_PER_MIN} pages/min",
        ours=f"{seen.per_minute:.0f} pages/min",
        met=seen.per_minute >= PAGES_PER_MIN and seen.good == captures.PAGES,
        note=f"{seen.per_minute / seen.bare_per_minute:.2f} of the bare browser below; {seen.browser}, with its start; "
        f"peak memory of all processes {seen.peak_bytes / MIB:.0f} MiB",
    )
    yield Row(
        what="median CPU time of a captured page, browser and our process",
        toolkit="",
        target="",
        ours=f"{1000 * seen.cpu_s:.0f} ms",
        met=None,
        note=f"bare browser: {1000 * seen.bare_cpu_s:.0f} ms, factor {seen.cpu_s / seen.bare_cpu_s:.2f}; one by one "
        "in a running browser",
    )
    yield Row(
        what="pages opened, read and photographed by a browser without proxy and checks",
        toolkit=bare_browser.PUBLISHED,
        target="",
        ours=f"{seen.bare_per_minute:.0f} pages/min",
        met=None,
        note="speed of this machine, for comparison with the one on which the target was set",
    )
