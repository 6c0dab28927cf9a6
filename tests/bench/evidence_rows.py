"""Rows that need a browser: speed of captures, and quality of reading and classification."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import bare_browser, captures, evidence
from tests.bench.row import MIB, Row
from tests.fakes.sandbox import installed_browser


def capture() -> Iterator[Row]:
    if installed_browser() is None:
        yield Row(what="capture", toolkit="76.6 pages/min", target=">= 200", ours="no browser here", met=None)
        return
    seen = captures.measure()
    yield Row(
        what=f"capture, {captures.PAGES} plain local pages, {captures.AT_ONCE} at once",
        toolkit="76.6 pages/min",
        target=">= 200 pages/min",
        ours=f"{seen.per_minute:.0f} pages/min",
        met=seen.per_minute >= 200 and seen.good == captures.PAGES,
        note=f"{seen.browser}, with its start; peak memory of all processes {seen.peak_bytes / MIB:.0f} MiB",
    )
    yield Row(
        what="pages a bare browser opens, reads and draws, nothing guarded or checked",
        toolkit=bare_browser.PUBLISHED,
        target="",
        ours=f"{seen.bare_per_minute:.0f} pages/min",
        met=None,
        note="how fast this machine is beside the one on which the target was set",
    )


def detector() -> Iterator[Row]:
    if installed_browser() is None:
        yield Row(what="block pages told from pages", toolkit="", target="", ours="no browser here", met=None)
        return
    seen = evidence.detect()
    yield Row(
        what=f"what is no page found, {seen.bad} of {seen.pages} labelled ones: precision / recall",
        toolkit="",
        target=">= 0.98 / >= 0.90",
        ours=f"{seen.precision:.3f} / {seen.recall:.3f}",
        met=seen.precision >= 0.98 and seen.recall >= 0.90,
        note=f"{seen.exact} also called what they are; missed: {', '.join(seen.missed) or 'none'}; "
        f"false alarms: {', '.join(seen.false_alarms) or 'none'}",
    )


def forms() -> Iterator[Row]:
    if installed_browser() is None:
        yield Row(what="awkward pages", toolkit="34 of 38", target="all", ours="no browser here", met=None)
        return
    seen = evidence.read_awkward()
    wrong = "; ".join(f"{name}: {why}" for name, why in seen.wrong.items())
    yield Row(
        what="awkward content pages with all that is on them",
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
