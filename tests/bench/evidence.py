"""Rows that need a browser: speed of captures."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import captures
from tests.bench.row import Row
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
        note=f"{seen.browser}, with its start",
    )
    yield Row(
        what="median CPU time of a captured page, browser and our process",
        toolkit="",
        target="",
        ours=f"{1000 * seen.cpu_s:.0f} ms",
        met=None,
        note="one by one in a running browser",
    )
