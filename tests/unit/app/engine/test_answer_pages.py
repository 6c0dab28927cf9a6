from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.engine.pipeline import AnswerPages
from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, Capturer, EvidencePolicy, Observation
from cache.capture_index import MemoryIndex
from cache.errors import BrowserUnavailable, IndexFailed, NoEvidence
from cache.pages import PageCache
from cache.sources.supplied import SUPPLIED_BY_AGENT, store_supplied, supplied_pages
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


async def supplied(cache: PageCache, texts: dict[str, str]) -> list[Capture]:
    records = [(url, {"url": url, "text": text}) for url, text in texts.items()]
    found = supplied_pages(records, supplier=SUPPLIED_BY_AGENT, now=datetime.now(UTC))
    return await store_supplied(found.values(), cache, owner="me")


@pytest.mark.parametrize(
    ("policy", "texts", "captured"),
    [
        ("captured", {FRANCE: "Paris", GONE: None, SPAIN: "Madrid"}, [FRANCE, GONE, SPAIN]),
        ("fallback", {FRANCE: "Paris", GONE: "It was here.", SPAIN: "Madrid"}, [FRANCE, GONE, SPAIN]),
        ("supplied", {FRANCE: "Lyon", GONE: "It was here.", SPAIN: None}, []),
    ],
)
async def test_policy_decides_which_copy_is_used_and_what_is_opened(
    policy: str, texts: dict[str, str | None], captured: list[str]
):
    capturer = RecordedCapturer()
    cache = PageCache(capturer, BlobStore.open("memory://"), MemoryIndex())
    copies = await supplied(cache, {FRANCE: "Lyon", GONE: "It was here."})
    seen = AnswerPages(cache, supplied=copies, policy=EvidencePolicy(policy), owner="me")
    await seen.capture_all([FRANCE, GONE, SPAIN], lambda done: None)
    for url, text in texts.items():
        if text is None:
            with pytest.raises(NoEvidence):
                await seen.evidence_for(url)
        else:
            assert (await seen.evidence_for(url)).text == text
    assert set(capturer.captured) == set(captured)


async def test_supplied_page_does_not_replace_one_that_redirects_to_a_forbidden_source():
    cache = PageCache(RecordedCapturer(), BlobStore.open("memory://"), MemoryIndex())
    redirected = Observation(
        url=SPAIN, outcome=CaptureOutcome.BLOCKED, captured_at=datetime.now(UTC), duration_s=0.0, backend="t",
        final_url="https://bench.example/spain",
    )  # fmt: skip
    await cache.add(SPAIN, redirected)
    seen = AnswerPages(
        cache,
        forbidden=ForbiddenSources([ForbiddenSource(host="bench.example", reason="the benchmark")]),
        supplied=await supplied(cache, {SPAIN: "Madrid"}),
        policy=EvidencePolicy.FALLBACK,
        owner="me",
    )
    await seen.capture_all([SPAIN], lambda done: None)
    with pytest.raises(NoEvidence) as missing:
        await seen.evidence_for(SPAIN)
    assert missing.value.outcome is CaptureOutcome.BLOCKED


async def test_other_copy_shows_how_far_the_page_and_the_supplied_text_agree():
    cache = PageCache(PagesByUrl({FRANCE: "one two three four five six"}), BlobStore.open("memory://"), MemoryIndex())
    copies = await supplied(cache, {FRANCE: "One two three four five seven", GONE: "It was here."})
    seen = AnswerPages(cache, supplied=copies, policy=EvidencePolicy.FALLBACK)
    await seen.capture_all([FRANCE, GONE], lambda done: None)
    france, gone = [(await seen.other_copy(one))["other_copy"] for one in seen.seen]
    assert (france["source"], france["page_id"], france["common_5grams"]) == ("supplied", copies[0].id, 0.3333)
    assert (gone["source"], gone["outcome"], gone["common_5grams"]) == ("web", "http_error", None)
    assert [one.source.value for one in seen.seen] == ["web", "supplied"]
    assert await cache.stored(GONE, owner="me") == await cache.stored(GONE)


async def test_stored_pages_are_used_at_any_age_and_nothing_is_captured():
    capturer, now = RecordedCapturer(), datetime.now(UTC)
    cache = PageCache(capturer, BlobStore.open("memory://"), MemoryIndex(), clock=lambda: now, max_age_s=60.0)
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
