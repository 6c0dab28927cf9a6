from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.engine.pipeline import AnswerPages
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Capturer, Observation
from cache.capture_index import MemoryIndex
from cache.errors import BrowserUnavailable, IndexFailed, NoEvidence
from cache.pages import PageCache
from judges.forbidden_sources import ForbiddenSource, ForbiddenSources
from tests.fakes.runtimes import PagesByUrl

FRANCE, SPAIN, GONE = "https://example.org/france", "https://example.org/spain", "https://example.org/gone"


class NoBrowser:
    """Capture backend on a machine without a browser."""

    async def capture(self, url: str) -> Observation:
        raise BrowserUnavailable("no browser was found")

    async def aclose(self) -> None:
        pass


class FullIndex(MemoryIndex):
    """Index that cannot store captures of one page."""

    async def record(self, *captures: Capture, synced: bool = True) -> None:
        if any(capture.url == SPAIN for capture in captures):
            raise IndexFailed("no space left")
        await super().record(*captures)


def pages(capturer: Capturer | None = None, index: MemoryIndex | None = None) -> AnswerPages:
    known: Capturer = capturer or PagesByUrl({FRANCE: "Paris", SPAIN: "Madrid"})
    return AnswerPages(PageCache(known, BlobStore.open("memory://"), index or MemoryIndex()))


async def test_pages_loaded_while_judging_are_listed_once():
    seen = pages()
    await seen.capture_all([FRANCE], lambda done: None)
    assert (await seen.evidence_for(FRANCE)).text == "Paris"
    assert (await seen.evidence_for(SPAIN)).text == "Madrid"
    assert [capture.url for capture in seen.seen] == [FRANCE, SPAIN]


async def test_page_that_cannot_be_stored_does_not_stop_the_others():
    seen = pages(index=FullIndex())
    progress: list[int] = []
    await seen.capture_all([FRANCE, SPAIN], progress.append)
    assert [capture.url for capture in seen.seen] == [FRANCE]
    assert progress[-1] == 2


async def test_missing_browser_is_reported():
    with pytest.raises(BrowserUnavailable, match="no browser was found"):
        await pages(NoBrowser()).capture_all([FRANCE, SPAIN], lambda done: None)


class RecordedCapturer(PagesByUrl):
    """Capturer that records the captured URLs."""

    def __init__(self) -> None:
        super().__init__({FRANCE: "Paris", SPAIN: "Madrid"})
        self.captured: list[str] = []

    async def capture(self, url: str) -> Observation:
        self.captured.append(url)
        return await super().capture(url)


async def test_forbidden_sources_are_not_captured_and_redirects_to_them_are_not_used():
    capturer = RecordedCapturer()
    cache = PageCache(capturer, BlobStore.open("memory://"), MemoryIndex())
    redirected = Observation(
        url=SPAIN, outcome=CaptureOutcome.OK, captured_at=datetime.now(UTC), duration_s=0.0, backend="t",
        final_url="https://bench.example/spain", text="Madrid",
    )  # fmt: skip
    await cache.add(SPAIN, redirected)
    entries = [{"url": FRANCE, "reason": "leaked"}, {"host": "bench.example", "reason": "the benchmark"}]
    seen = AnswerPages(cache, forbidden=ForbiddenSources(map(ForbiddenSource.model_validate, entries)))
    await seen.capture_all([FRANCE, SPAIN], lambda done: None)
    for url, reason in ((FRANCE, "leaked"), (SPAIN, "the benchmark")):
        with pytest.raises(NoEvidence, match=reason) as missing:
            await seen.evidence_for(url)
        assert missing.value.outcome is CaptureOutcome.FORBIDDEN
    assert capturer.captured == []


async def test_stored_pages_are_used_at_any_age_and_nothing_is_captured():
    capturer, now = RecordedCapturer(), datetime.now(UTC)
    cache = PageCache(
        capturer, BlobStore.open("memory://"), MemoryIndex(), clock=lambda: now, max_age_s=60.0, failure_ttl_s=60.0
    )
    await AnswerPages(cache).capture_all([FRANCE, GONE], lambda done: None)
    capturer.captured.clear()
    now += timedelta(days=30)
    stored = AnswerPages(cache, stored_only=True)
    progress: list[int] = []
    await stored.capture_all([FRANCE, SPAIN, GONE], progress.append)
    assert ([capture.url for capture in stored.seen], progress) == ([FRANCE, GONE], [0, 1, 2, 3])
    assert (await stored.evidence_for(FRANCE)).text == "Paris"
    for url, outcome, gone in ((SPAIN, "not_stored", False), (GONE, "http_error", True)):
        with pytest.raises(NoEvidence) as missing:
            await stored.evidence_for(url)
        assert (missing.value.outcome, missing.value.gone) == (outcome, gone)
    assert capturer.captured == []
