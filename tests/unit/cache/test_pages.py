"""Page cache: lookup, single flight, storage, prepared evidence."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from cache.blobs import BlobStore
from cache.capture import Capture, CaptureOutcome, CaptureSource, Observation, PageKind
from cache.capture_index import MemoryIndex
from cache.errors import BlobCorrupt, NoEvidence
from cache.pages import PageCache
from tests.fakes.decodes import counted_decodes
from tests.fakes.pages import jpeg
from tests.unit.cache.scripted import NOON, Clock, ScriptedCapturer

URL = "https://a.com/page"


def _pages(capturer: ScriptedCapturer, clock: Clock, **options: float) -> PageCache:
    return PageCache(capturer, BlobStore.open("memory://"), MemoryIndex(), clock=clock, **options)  # type: ignore[arg-type]


async def test_page_is_captured_once_and_then_looked_up() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock)
    pages = _pages(capturer, clock)
    first = await pages.get(URL)
    again = await pages.get("http://www.a.com/page/?utm_source=x#top")
    assert again == first
    assert capturer.captured_urls == [URL]


async def test_cancelling_one_request_does_not_cancel_the_shared_capture() -> None:
    clock, gate = Clock(), asyncio.Event()
    capturer = ScriptedCapturer(clock, gate=gate)
    pages = _pages(capturer, clock)
    leaver, stayer = asyncio.create_task(pages.get(URL)), asyncio.create_task(pages.get(URL))
    while not capturer.captured_urls:  # noqa: ASYNC110 - the fake has no event for this
        await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.wait([leaver])
    gate.set()
    assert (await stayer).is_evidence
    assert capturer.cancelled == 0


async def test_evidence_has_the_captured_content_and_its_hashes() -> None:
    clock = Clock()
    pages = _pages(ScriptedCapturer(clock), clock)
    evidence = await pages.evidence_for(URL)
    assert evidence.text == f"text of {URL}, capture 0"
    assert evidence.screenshots == (b"top", b"bottom")
    assert evidence.links == (("Home", "https://a.com/"),)
    assert evidence.page_id == evidence.capture.id
    assert evidence.digests[0] == hashlib.sha256(evidence.text.encode()).hexdigest()
    assert evidence.digests[-1] == hashlib.sha256(b"bottom").hexdigest()
    assert "not shown" not in evidence.text


@pytest.mark.parametrize("outcome", [CaptureOutcome.DNS_ERROR, CaptureOutcome.CAPTCHA, CaptureOutcome.TIMEOUT])
async def test_failed_capture_is_never_evidence(outcome: CaptureOutcome) -> None:
    clock = Clock()
    pages = _pages(ScriptedCapturer(clock, lambda url, nth: outcome), clock)
    with pytest.raises(NoEvidence) as nothing:
        await pages.evidence_for(URL)
    assert nothing.value.outcome is outcome
    assert nothing.value.gone is (outcome is CaptureOutcome.DNS_ERROR)
    assert nothing.value.capture is not None


async def test_failed_attempt_is_reused_until_its_ttl_expires() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.TIMEOUT if nth == 0 else CaptureOutcome.OK)
    pages = _pages(capturer, clock)
    assert not (await pages.get(URL)).is_evidence
    clock.advance(59)
    assert not (await pages.get(URL)).is_evidence
    clock.advance(2)
    assert (await pages.get(URL)).is_evidence
    assert len(capturer.captured_urls) == 2


async def test_next_run_tries_a_failed_page_at_once() -> None:
    clock, blobs, index = Clock(), BlobStore.open("memory://"), MemoryIndex()
    capturer = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.TIMEOUT if nth == 0 else CaptureOutcome.OK)
    assert not (await PageCache(capturer, blobs, index, clock=clock).get(URL)).is_evidence
    clock.advance(1)
    assert (await PageCache(capturer, blobs, index, clock=clock).get(URL)).is_evidence


async def test_refresh_captures_again_and_a_failure_keeps_the_earlier_evidence() -> None:
    clock = Clock()
    outcomes = [CaptureOutcome.OK, CaptureOutcome.OK, CaptureOutcome.BLOCKED]
    capturer = ScriptedCapturer(clock, lambda url, nth: outcomes[nth])
    pages = _pages(capturer, clock)
    first = await pages.get(URL)
    clock.advance(1)
    second = await pages.get(URL, refresh=True)
    clock.advance(1)
    third = await pages.get(URL, refresh=True)
    assert len({first.id, second.id, third.id}) == 3
    assert third.outcome is CaptureOutcome.BLOCKED
    assert (await pages.get(URL)).id == second.id


@pytest.mark.parametrize("url", ["file:///etc/passwd", "not a url", "https://u:p@a.com/", ""])
async def test_unfetchable_url_is_unsupported_without_a_request(url: str) -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock)
    capture = await _pages(capturer, clock).get(url)
    assert capture.outcome is CaptureOutcome.UNSUPPORTED
    assert capture.detail
    assert capturer.captured_urls == []


async def test_damaged_evidence_is_captured_again(tmp_path: Path) -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock)
    pages = PageCache(capturer, BlobStore.open(tmp_path.as_uri()), MemoryIndex(), clock=clock)
    capture = await pages.get(URL)
    _flip_a_byte(tmp_path, capture)
    with pytest.raises(BlobCorrupt):
        await pages.evidence(capture)
    evidence = await pages.evidence_for(URL)
    assert evidence.text == f"text of {URL}, capture 1"


async def test_damaged_evidence_of_a_page_that_is_gone_is_corrupt_and_not_gone(tmp_path: Path) -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.OK if nth == 0 else CaptureOutcome.DNS_ERROR)
    pages = PageCache(capturer, BlobStore.open(tmp_path.as_uri()), MemoryIndex(), clock=clock)
    capture = await pages.get(URL)
    _flip_a_byte(tmp_path, capture)
    clock.advance(10)
    for _claim in range(5):
        with pytest.raises(NoEvidence) as nothing:
            await pages.evidence_for(URL)
        assert (nothing.value.outcome, nothing.value.gone) == (CaptureOutcome.CORRUPT, False)
        assert nothing.value.capture == capture
    assert len(capturer.captured_urls) == 2  # the second attempt is reused until its TTL expires


async def test_final_url_of_a_redirect_gets_an_alias_of_the_capture() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, redirects={"https://a.com/short": "https://a.com/long/way"})
    pages = _pages(capturer, clock)
    first = await pages.get("https://a.com/short")
    second = await pages.get("https://a.com/long/way")
    assert capturer.captured_urls == ["https://a.com/short"]
    assert (second.url, second.alias_of, second.blobs) == ("https://a.com/long/way", first.id, first.blobs)
    assert second.id != first.id
    assert await pages.get("https://a.com/long/way#part") == second
    assert await pages.get("https://a.com/short") == first
    refreshed = await pages.get("https://a.com/long/way", refresh=True)
    assert refreshed.alias_of is None
    assert len(capturer.captured_urls) == 2


async def test_added_capture_is_used_and_the_earlier_one_is_kept() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.CAPTCHA)
    pages = _pages(capturer, clock)
    blocked = await pages.get(URL)
    clock.advance(1)
    given = replace(await ScriptedCapturer(clock).capture(URL), source=CaptureSource.UPLOAD, provenance={"by": "me"})
    added = await pages.add(URL, given)
    assert added.id != blocked.id
    assert (await pages.get("http://www.a.com/page/")).id == added.id
    evidence = await pages.evidence_for(URL)
    assert (evidence.capture.source, evidence.capture.provenance) == (CaptureSource.UPLOAD, {"by": "me"})


class _Archive:
    """Archive with a copy of every page, which records the requested dates."""

    def __init__(self) -> None:
        self.asked: list[datetime | None] = []

    async def find_copy(self, url: str, live: Observation, near: datetime | None) -> Observation:
        self.asked.append(near)
        return replace(live, outcome=CaptureOutcome.OK, text="the copy", source=CaptureSource.WAYBACK, gone=False)


async def test_archive_is_queried_only_for_a_page_without_evidence_that_cannot_be_captured() -> None:
    clock, archive = Clock(), _Archive()
    outcomes = [CaptureOutcome.OK, CaptureOutcome.DNS_ERROR, CaptureOutcome.DNS_ERROR]
    capturer = ScriptedCapturer(clock, lambda url, nth: outcomes[nth])
    pages = PageCache(capturer, BlobStore.open("memory://"), MemoryIndex(), clock=clock, archive=archive)
    assert (await pages.get(URL)).source is CaptureSource.WEB
    clock.advance(1)
    assert (await pages.get(URL, refresh=True)).outcome is CaptureOutcome.DNS_ERROR
    assert archive.asked == []
    copy = await pages.get("https://b.com/", near=NOON)
    assert (copy.source, archive.asked) == (CaptureSource.WAYBACK, [NOON])
    assert (await pages.evidence_for("https://b.com/")).text == "the copy"
    assert len(archive.asked) == 1


async def test_second_process_uses_the_capture_of_the_first() -> None:
    clock, gate, turns = Clock(), asyncio.Event(), _SingleLock()
    blobs, index = BlobStore.open("memory://"), MemoryIndex()
    capturers = [ScriptedCapturer(clock, gate=gate) for _ in range(2)]
    workers = [PageCache(capturer, blobs, index, clock=clock, locks=turns) for capturer in capturers]
    requests = [
        asyncio.create_task(worker.get(URL, refresh=refresh)) for worker in workers for refresh in (False, True)
    ]
    async with asyncio.timeout(60):
        while not any(capturer.captured_urls for capturer in capturers):  # noqa: ASYNC110
            await asyncio.sleep(0)
    gate.set()
    assert len({capture.id for capture in await asyncio.gather(*requests)}) == 1
    assert sorted(len(capturer.captured_urls) for capturer in capturers) == [0, 1]


class _SingleLock:
    """Capture lock within one process: one lock for all keys."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        async with self._lock:
            yield


def _flip_a_byte(folder: Path, capture: Capture) -> None:
    sha256 = capture.blobs["text"].sha256
    file = folder / "sha256" / sha256[:2] / sha256
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(bytes(data))


def _observed(*screenshots: bytes, kind: PageKind = PageKind.WEB) -> Observation:
    return Observation(
        url=URL,
        outcome=CaptureOutcome.OK,
        captured_at=NOON,
        duration_s=0.1,
        backend="fake",
        kind=kind,
        text="A page.",
        screenshots=screenshots,
    )


async def test_parts_of_a_page_are_prepared_once_when_it_is_stored() -> None:
    blobs, index = BlobStore.open("memory://"), MemoryIndex()
    first, later = (PageCache(ScriptedCapturer(Clock()), blobs, index) for _ in range(2))
    with counted_decodes() as decoded:
        capture = await first.add(URL, _observed(jpeg(1100, 3500)))
        assert capture.part_names == ("part-0", "part-1")
        for pages in (first, later):
            evidence = await pages.evidence(capture)
            parts = [hashlib.sha256(shot).hexdigest() for shot in evidence.screenshots]
            assert parts == [capture.blobs[name].sha256 for name in capture.part_names]
            assert evidence.in_parts
            assert list(evidence.digests[-2:]) == parts
    assert decoded == ["jpeg"]
