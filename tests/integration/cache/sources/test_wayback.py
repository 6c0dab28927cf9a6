"""Web archive as a fallback for unavailable pages: both of its APIs over real HTTP, through the egress proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from cache.backends.http import HttpCapturer
from cache.blobs import BlobStore
from cache.capture import CaptureOutcome, CaptureSource, Observation
from cache.capture_index import MemoryIndex
from cache.egress.proxy import EgressProxy
from cache.pacing import ProcessHostPacing
from cache.pages import PageCache
from cache.sources.wayback import Wayback
from tests.standin.archive import StandInArchive
from tests.standin.web import Reply, StandInWeb

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
URL = "https://towns.example/benches?id=2&x=a%26b"
OLD = "<title>Benches</title><p>In 2019 there was one bench, and it stood by the old gate."
NEW = "<title>Benches</title><p>In 2025 there were two benches, and both stood by the new gate."
COPIES = {URL: {"20190310120000": OLD, "20250601080000": NEW}}
DEAD = Observation(
    url=URL,
    outcome=CaptureOutcome.HTTP_ERROR,
    captured_at=NOON,
    duration_s=0.1,
    backend="test",
    detail="HTTP status 404",
    http_status=404,
    gone=True,
)


class RecordingPacing(ProcessHostPacing):
    """Host pacing that records delays instead of sleeping."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        super().__init__(now=lambda: 0.0, sleep=self._slept)

    async def _slept(self, seconds: float) -> None:
        self.slept.append(seconds)


@asynccontextmanager
async def archive(standin: StandInArchive, pace: RecordingPacing | None = None) -> AsyncIterator[Wayback]:
    async with standin, EgressProxy(frozenset({standin.host_port})) as proxy:
        fetch = HttpCapturer(proxy, semaphore=asyncio.Semaphore(2), deadline_s=10)
        address = standin.url("")
        yield Wayback(fetch, pace or RecordingPacing(), now=lambda: NOON, availability=address, archive=address)


@pytest.mark.parametrize(
    ("near", "says", "stamp", "quick"),
    [
        (datetime(2019, 1, 1, tzinfo=UTC), "one bench", "2019-03-10T12:00:00+00:00", True),
        (datetime(2024, 1, 1, tzinfo=UTC), "two benches", "2025-06-01T08:00:00+00:00", False),
        (None, "two benches", "2025-06-01T08:00:00+00:00", True),
    ],
)
async def test_copy_closest_to_the_answer_date_is_labelled_evidence(
    near: datetime | None, says: str, stamp: str, quick: bool
) -> None:
    standin = StandInArchive(COPIES, has_availability=quick)
    async with archive(standin) as wayback:
        copy = await wayback.find_copy(URL, DEAD, near)
    assert copy.is_evidence and says in copy.text
    assert (copy.url, copy.source, copy.final_url, copy.gone) == (URL, CaptureSource.WAYBACK, None, False)
    assert copy.provenance["archived_at"] == stamp
    assert copy.provenance["archive_url"].endswith(f"id_/{URL}")
    assert (copy.provenance["live_outcome"], copy.provenance["live_status"]) == ("http_error", "404")
    assert copy.detail == f"as archived on {stamp[:10]}; the page itself: http_error"
    assert standin.hits["/cdx/search/cdx"] == (not quick)


@pytest.mark.parametrize(("path", "status"), [("/wayback", 429), ("/cdx", 503), ("/web", 404)])
async def test_unavailable_archive_does_not_report_never_seen(path: str, status: int) -> None:
    standin = StandInArchive(COPIES, has_availability=path == "/web")
    standin.failing[path] = status
    async with archive(standin) as wayback:
        seen = await wayback.find_copy(URL, DEAD, None)
    assert seen.outcome is CaptureOutcome.HTTP_ERROR
    assert seen.provenance == {"wayback": "no answer"}
    assert "never seen" not in seen.detail


async def test_page_cache_stores_failure_and_copy_and_serves_the_copy() -> None:
    standin = StandInArchive({})
    async with StandInWeb() as web, archive(standin) as wayback, EgressProxy(frozenset({web.host_port})) as proxy:
        url = web.url("/gone")
        standin.copies[url] = {"20250601080000": NEW}
        standin.pages[f"/web/20250601080000id_/{url}"] = Reply.html(NEW)
        index = MemoryIndex()
        fetch = HttpCapturer(proxy, semaphore=asyncio.Semaphore(1))
        pages = PageCache(fetch, BlobStore.open("memory://"), index, archive=wayback)
        evidence = await pages.evidence_for(url)
        attempts = [capture async for capture in index.captures()]
        web.pages["/gone"] = Reply.html("<p>The page is back, and says that there are three benches by the gate now.")
        live = await pages.get(url, refresh=True)
    assert "two benches" in evidence.text
    assert [(attempt.outcome.value, attempt.source.value) for attempt in attempts] == [
        ("http_error", "web"),
        ("ok", "wayback"),
    ]
    assert (live.outcome, live.source) == (CaptureOutcome.OK, CaptureSource.WEB)
    assert standin.hits[f"/web/20250601080000id_/{url}"] == 1
