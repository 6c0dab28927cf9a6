"""Attack: a cited URL whose dot segments make the web archive serve another page as evidence for it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from cache.backends.http import HttpCapturer
from cache.capture import CaptureOutcome, Observation
from cache.egress.proxy import EgressProxy
from cache.pacing import ProcessHostPacing
from cache.sources.wayback import Wayback
from tests.standin.archive import StandInArchive
from tests.standin.web import Reply

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
STAMP = "20250601080000"
OTHER = "https://attacker.example/claim"
CITED = "https://trusted.example"


def dead(url: str) -> Observation:
    return Observation(
        url=url,
        outcome=CaptureOutcome.HTTP_ERROR,
        captured_at=NOON,
        duration_s=0.1,
        backend="test",
        http_status=404,
        gone=True,
    )


@pytest.mark.parametrize(
    "path",
    [
        f"/../../../web/{STAMP}id_/{OTHER}",
        f"/%2e%2e/%2E%2E/.%2e/web/{STAMP}id_/{OTHER}",
        f"/%252e%252e/%252e%252e/%252e%252e/web/{STAMP}id_/{OTHER}",
    ],
)
async def test_dot_segments_request_no_other_page(path: str) -> None:
    url = CITED + path
    text = "<p>The attacker's page, long enough to be accepted as evidence of anything."
    # The archive reports a copy of every requested URL.
    archive = StandInArchive({OTHER: {STAMP: text}, **{key: {STAMP: text} for key in (url, CITED + "/")}})
    archive.pages = {name: page for name, page in archive.pages.items() if CITED not in name}
    async with archive, EgressProxy(frozenset({archive.host_port})) as proxy:
        capturer = HttpCapturer(proxy, semaphore=asyncio.Semaphore(2), deadline_s=10)
        source = Wayback(
            capturer,
            ProcessHostPacing(),
            now=lambda: NOON,
            availability=archive.url(""),
            archive=archive.url(""),
            interval_s=0,
        )
        found = await source.find_copy(url, dead(url), None)
    assert not found.is_evidence, found.text
    requested = [visit.path for visit in archive.visits if visit.path.startswith("/web/")]
    assert all(each.startswith(f"/web/{STAMP}id_/{CITED}/") for each in requested), requested


async def test_copy_that_redirects_to_another_page_names_that_page() -> None:
    """An archived open redirect: the checks of sources must see the page that was reached, as they do live."""
    url = f"{CITED}/out?to={OTHER}"
    archive = StandInArchive(
        {url: {STAMP: "moved"}, OTHER: {STAMP: "<p>The attacker's page, long enough as evidence."}}
    )
    location = f"/web/{STAMP}id_/{OTHER}"
    archive.pages[f"/web/{STAMP}id_/{CITED}/out"] = Reply(status=302, headers={"Location": location})
    async with archive, EgressProxy(frozenset({archive.host_port})) as proxy:
        source = Wayback(
            HttpCapturer(proxy, semaphore=asyncio.Semaphore(2), deadline_s=10),
            ProcessHostPacing(),
            now=lambda: NOON,
            availability=archive.url(""),
            archive=archive.url(""),
            interval_s=0,
        )
        found = await source.find_copy(url, dead(url), None)
    assert (found.is_evidence, found.url, found.final_url) == (True, url, OTHER)
