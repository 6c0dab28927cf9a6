"""Rows that need a browser: speed of captures, classification of labelled pages, and reading of unusual pages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache, partial

from cache.backends.patchright import BrowserCapturer
from cache.capture import Capturer
from cache.egress.proxy import EgressProxy
from tests.bench import bare_browser, captures
from tests.bench.row import MIB, Row
from tests.fakes.sandbox import installed_browser, is_sandbox_missing
from tests.labelled.captured import capture_labelled_pages
from tests.labelled.labels import Detection, compare_with_labels
from tests.unusual_pages.captured import UnusualPagesResult, capture_unusual_pages

AT_ONCE = 6
PAGES_PER_MIN = 250


def _capturer(proxy: EgressProxy, *, unsandboxed: bool) -> Capturer:
    program = installed_browser()
    assert program is not None
    return BrowserCapturer(program, proxy, semaphore=asyncio.Semaphore(AT_ONCE), allow_unsandboxed=unsandboxed)


@cache
def detect_labelled_pages() -> Detection:
    """Return the detection figures on the labelled pages."""
    seen = asyncio.run(capture_labelled_pages(partial(_capturer, unsandboxed=is_sandbox_missing())))
    return compare_with_labels({name: each.outcome for name, each in seen.items()})


@cache
def read_unusual_pages() -> UnusualPagesResult:
    """Return which unusual pages are captured completely, and which errors have the right outcome."""
    return asyncio.run(capture_unusual_pages(partial(_capturer, unsandboxed=is_sandbox_missing())))


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


def detector() -> Iterator[Row]:
    if installed_browser() is None:
        yield Row(what="detection of bad pages", toolkit="", target="", ours="no browser", met=None)
        return
    seen = detect_labelled_pages()
    yield Row(
        what=f"detection of {seen.bad} bad pages among {seen.pages} labelled pages: precision / recall",
        toolkit="",
        target=">= 0.98 / >= 0.90",
        ours=f"{seen.precision:.3f} / {seen.recall:.3f}",
        met=seen.precision >= 0.98 and seen.recall >= 0.90,
        note=f"{seen.exact} with the correct outcome; missed: {', '.join(seen.missed) or 'none'}; "
        f"false alarms: {', '.join(seen.false_alarms) or 'none'}",
    )


def forms() -> Iterator[Row]:
    if installed_browser() is None:
        yield Row(what="unusual pages", toolkit="34 of 38", target="all", ours="no browser", met=None)
        return
    seen = read_unusual_pages()
    wrong = "; ".join(f"{name}: {why}" for name, why in seen.wrong.items())
    yield Row(
        what="unusual content pages captured completely",
        toolkit="34 of 38",
        target=f"{seen.pages} of {seen.pages}",
        ours=f"{seen.read} of {seen.pages}",
        met=seen.read == seen.pages,
        note=wrong,
    )
    yield Row(
        what="error pages recognised",
        toolkit="0 of 8",
        target=f"{seen.errors} of {seen.errors}",
        ours=f"{seen.recognised} of {seen.errors}",
        met=seen.recognised == seen.errors,
    )
