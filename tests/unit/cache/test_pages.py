"""The page cache: looked up, captured once, kept, prepared once, and honest when there is nothing."""

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
from cache.capture import Capture, CaptureOutcome, CaptureSource, Observation
from cache.capture_index import FolderIndex, MemoryIndex
from cache.errors import BlobCorrupt, NoEvidence
from cache.pages import PageCache
from tests.unit.cache.scripted import NOON, Clock, ScriptedCapturer

URL = "https://a.com/page"


def _pages(capturer: ScriptedCapturer, clock: Clock, **options: float) -> PageCache:
    return PageCache(capturer, BlobStore.open("memory://"), MemoryIndex(), clock=clock, **options)  # type: ignore[arg-type]


async def test_a_page_is_captured_once_and_then_looked_up() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock)
    pages = _pages(capturer, clock)
    first = await pages.get(URL)
    again = await pages.get("http://www.a.com/page/?utm_source=x#top")
    assert again == first
    assert capturer.asked == [URL]


async def test_a_hundred_who_ask_at_once_share_one_capture() -> None:
    clock, gate = Clock(), asyncio.Event()
    capturer = ScriptedCapturer(clock, gate=gate)
    pages = _pages(capturer, clock)
    asking = [asyncio.create_task(pages.get(URL)) for _ in range(100)]
    await asyncio.sleep(0)
    gate.set()
    assert len({capture.id for capture in await asyncio.gather(*asking)}) == 1
    assert len(capturer.asked) == 1


async def test_one_who_stops_waiting_leaves_the_capture_to_the_others() -> None:
    clock, gate = Clock(), asyncio.Event()
    capturer = ScriptedCapturer(clock, gate=gate)
    pages = _pages(capturer, clock)
    leaver, stayer = asyncio.create_task(pages.get(URL)), asyncio.create_task(pages.get(URL))
    while not capturer.asked:  # noqa: ASYNC110 - the fake has no event for this
        await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.wait([leaver])
    gate.set()
    assert (await stayer).is_evidence
    assert capturer.cancelled == 0


async def test_a_capture_nobody_waits_for_any_more_is_cancelled() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, gate=asyncio.Event())
    pages = _pages(capturer, clock)
    asking = asyncio.create_task(pages.get(URL))
    while not capturer.asked:  # noqa: ASYNC110 - the fake has no event for this
        await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    await pages.aclose()
    assert capturer.cancelled == 1
    assert capturer.closed


async def test_evidence_is_what_was_seen_with_its_digests() -> None:
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


async def test_the_same_prepared_bytes_are_handed_to_everyone() -> None:
    clock = Clock()
    pages = _pages(ScriptedCapturer(clock), clock)
    capture = await pages.get(URL)
    one, other = await asyncio.gather(pages.evidence(capture), pages.evidence(capture))
    assert one is other
    assert await pages.evidence(capture) is one


async def test_prepared_evidence_is_bounded_in_memory() -> None:
    clock = Clock()
    pages = _pages(ScriptedCapturer(clock), clock, prepared_bytes=300)
    first = await pages.get(URL)
    kept = await pages.evidence(first)
    for n in range(3):
        await pages.evidence_for(f"https://b.com/{n}")
    assert await pages.evidence(first) is not kept


@pytest.mark.parametrize(
    "outcome", [outcome for outcome in CaptureOutcome if outcome not in (CaptureOutcome.OK, CaptureOutcome.PARTIAL)]
)
async def test_what_is_no_evidence_is_never_shown(outcome: CaptureOutcome) -> None:
    clock = Clock()
    pages = _pages(ScriptedCapturer(clock, lambda url, nth: outcome), clock)
    with pytest.raises(NoEvidence) as nothing:
        await pages.evidence_for(URL)
    assert nothing.value.outcome is outcome
    assert nothing.value.gone is (outcome is CaptureOutcome.DNS_ERROR)
    assert nothing.value.capture is not None


async def test_a_failed_attempt_answers_only_for_a_short_while() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.TIMEOUT if nth == 0 else CaptureOutcome.OK)
    pages = _pages(capturer, clock, failure_ttl_s=60)
    assert not (await pages.get(URL)).is_evidence
    clock.pass_time(59)
    assert not (await pages.get(URL)).is_evidence
    clock.pass_time(2)
    assert (await pages.get(URL)).is_evidence
    assert len(capturer.asked) == 2


async def test_old_evidence_is_captured_again_when_an_age_is_set() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock)
    pages = _pages(capturer, clock, max_age_s=3600)
    first = await pages.get(URL)
    clock.pass_time(3601)
    assert (await pages.get(URL)).id != first.id


async def test_what_was_denied_under_other_settings_is_captured_again() -> None:
    clock, blobs, index = Clock(), BlobStore.open("memory://"), MemoryIndex()
    denied = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.EGRESS_DENIED)
    before = PageCache(denied, blobs, index, clock=clock)
    assert {(await before.get(URL)).outcome for _ in range(3)} == {CaptureOutcome.EGRESS_DENIED}
    assert len(denied.asked) == 1
    allowed = ScriptedCapturer(clock)
    assert (await PageCache(allowed, blobs, index, clock=clock).get(URL)).is_evidence
    assert len(allowed.asked) == 1


async def test_a_refresh_captures_again_and_a_failure_does_not_hide_the_evidence_before() -> None:
    clock = Clock()
    outcomes = [CaptureOutcome.OK, CaptureOutcome.OK, CaptureOutcome.BLOCKED]
    capturer = ScriptedCapturer(clock, lambda url, nth: outcomes[nth])
    pages = _pages(capturer, clock)
    first = await pages.get(URL)
    clock.pass_time(1)
    second = await pages.get(URL, refresh=True)
    clock.pass_time(1)
    third = await pages.get(URL, refresh=True)
    assert len({first.id, second.id, third.id}) == 3
    assert third.outcome is CaptureOutcome.BLOCKED
    assert (await pages.get(URL)).id == second.id


@pytest.mark.parametrize("url", ["file:///etc/passwd", "not a url", "https://u:p@a.com/", ""])
async def test_what_may_not_be_fetched_ends_without_asking_the_web(url: str) -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock)
    capture = await _pages(capturer, clock).get(url)
    assert capture.outcome is CaptureOutcome.UNSUPPORTED
    assert capture.detail
    assert capturer.asked == []


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


async def test_a_page_whose_evidence_went_bad_and_is_gone_today_is_corrupt_and_no_verdict(tmp_path: Path) -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.OK if nth == 0 else CaptureOutcome.DNS_ERROR)
    pages = PageCache(capturer, BlobStore.open(tmp_path.as_uri()), MemoryIndex(), clock=clock)
    capture = await pages.get(URL)
    _flip_a_byte(tmp_path, capture)
    clock.pass_time(10)
    for _claim in range(5):
        with pytest.raises(NoEvidence) as nothing:
            await pages.evidence_for(URL)
        assert (nothing.value.outcome, nothing.value.gone) == (CaptureOutcome.CORRUPT, False)
        assert nothing.value.capture == capture
    assert len(capturer.asked) == 2  # the second look answers for a while, for every claim on the page


async def test_old_evidence_that_cannot_be_had_again_is_not_asked_for_by_every_claim() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.OK if nth == 0 else CaptureOutcome.BLOCKED)
    pages = _pages(capturer, clock, max_age_s=3600)
    await pages.get(URL)
    clock.pass_time(3601)
    assert [(await pages.get(URL)).outcome for _ in range(3)] == [CaptureOutcome.BLOCKED] * 3
    assert len(capturer.asked) == 2


async def test_a_url_where_another_ended_has_that_page_in_a_row_of_its_own() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, ends_at={"https://a.com/short": "https://a.com/long/way"})
    pages = _pages(capturer, clock)
    first = await pages.get("https://a.com/short")
    second = await pages.get("https://a.com/long/way")
    assert capturer.asked == ["https://a.com/short"]
    assert (second.url, second.alias_of, second.blobs) == ("https://a.com/long/way", first.id, first.blobs)
    assert second.id != first.id
    assert await pages.get("https://a.com/long/way#part") == second
    assert await pages.get("https://a.com/short") == first
    refreshed = await pages.get("https://a.com/long/way", refresh=True)
    assert refreshed.alias_of is None
    assert len(capturer.asked) == 2


async def test_what_is_added_by_hand_answers_from_then_on_beside_what_was_there() -> None:
    clock = Clock()
    capturer = ScriptedCapturer(clock, lambda url, nth: CaptureOutcome.CAPTCHA)
    pages = _pages(capturer, clock)
    blocked = await pages.get(URL)
    clock.pass_time(1)
    given = replace(await ScriptedCapturer(clock).capture(URL), source=CaptureSource.UPLOAD, provenance={"by": "me"})
    added = await pages.add(URL, given)
    assert added.id != blocked.id
    assert (await pages.get("http://www.a.com/page/")).id == added.id
    evidence = await pages.evidence_for(URL)
    assert (evidence.capture.source, evidence.capture.provenance) == (CaptureSource.UPLOAD, {"by": "me"})


class _Archive:
    """Has a copy of every page, and counts how often it was asked, with what date."""

    def __init__(self) -> None:
        self.asked: list[datetime | None] = []

    async def copy_of(self, url: str, live: Observation, near: datetime | None) -> Observation:
        self.asked.append(near)
        return replace(live, outcome=CaptureOutcome.OK, text="the copy", source=CaptureSource.WAYBACK, gone=False)


async def test_an_archive_is_asked_only_for_a_page_that_never_was_captured_and_cannot_be() -> None:
    clock, archive = Clock(), _Archive()
    outcomes = [CaptureOutcome.OK, CaptureOutcome.DNS_ERROR, CaptureOutcome.DNS_ERROR]
    capturer = ScriptedCapturer(clock, lambda url, nth: outcomes[nth])
    pages = PageCache(capturer, BlobStore.open("memory://"), MemoryIndex(), clock=clock, archive=archive)
    assert (await pages.get(URL)).source is CaptureSource.WEB
    clock.pass_time(1)
    assert (await pages.get(URL, refresh=True)).outcome is CaptureOutcome.DNS_ERROR
    assert archive.asked == []
    copy = await pages.get("https://b.com/", near=NOON)
    assert (copy.source, archive.asked) == (CaptureSource.WAYBACK, [NOON])
    assert (await pages.evidence_for("https://b.com/")).text == "the copy"
    assert len(archive.asked) == 1


async def test_two_processes_take_turns_and_the_second_finds_what_the_first_captured() -> None:
    clock, gate, turns = Clock(), asyncio.Event(), _OneAtATime()
    blobs, index = BlobStore.open("memory://"), MemoryIndex()
    capturers = [ScriptedCapturer(clock, gate=gate) for _ in range(2)]
    workers = [PageCache(each, blobs, index, clock=clock, turns=turns) for each in capturers]
    asking = [asyncio.create_task(worker.get(URL, refresh=refresh)) for worker in workers for refresh in (False, True)]
    await asyncio.sleep(0.01)
    gate.set()
    assert len({capture.id for capture in await asyncio.gather(*asking)}) == 1
    assert sorted(len(each.asked) for each in capturers) == [0, 1]


class _OneAtATime:
    """Turns of processes that are none: one lock for all keys."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        async with self._lock:
            yield


async def test_a_new_process_finds_what_the_last_one_captured(tmp_path: Path) -> None:
    clock = Clock()
    blobs = BlobStore.open((tmp_path / "blobs").as_uri())
    first = PageCache(ScriptedCapturer(clock), blobs, await FolderIndex.open(tmp_path / "index"), clock=clock)
    capture = await first.get(URL)
    idle = ScriptedCapturer(clock)
    second = PageCache(idle, blobs, await FolderIndex.open(tmp_path / "index"), clock=clock)
    assert (await second.evidence_for(URL)).capture == capture
    assert idle.asked == []


def _flip_a_byte(folder: Path, capture: Capture) -> None:
    sha256 = capture.blobs["text"].sha256
    file = folder / "sha256" / sha256[:2] / sha256
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(bytes(data))
