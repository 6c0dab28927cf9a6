"""Soft 404 detection by a random sibling URL: the browser captures the page, plain HTTP its sibling."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cache.backends.http import HttpCapturer
from cache.backends.patchright import BrowserCapturer
from cache.backends.router import PROBE_BYTES, RoutedCapturer, SiblingProbe
from cache.capture import CaptureOutcome, Observation
from cache.egress.proxy import EgressProxy
from tests.fakes.sandbox import is_sandbox_missing
from tests.standin.web import Reply, StandInWeb, Visit

pytestmark = pytest.mark.browser

CITED = "/songs/2020/a-song-of-ours"
NOTHING = (
    "<title>Not Found</title><style>nav::before{content:'Menu'} aside{display:none}</style><nav><a href='/'>Songs</a> "
    "<a href='/x'>People</a></nav><h1>Not Found</h1><aside>Nobody sees this.</aside><p>Nothing is kept under PLACE "
    "since the archive moved to its new house. <p>Try the index.<script>document.body.dataset.seen = 1</script>"
)


async def _seen(site: StandInWeb, program: Path) -> Observation:
    async with EgressProxy(frozenset({site.host_port})) as proxy:
        browser = BrowserCapturer(
            program, proxy, semaphore=asyncio.Semaphore(1), deadline_s=180, allow_unsandboxed=is_sandbox_missing()
        )
        fetch = HttpCapturer(proxy, semaphore=asyncio.Semaphore(1), deadline_s=180, max_bytes=PROBE_BYTES)
        try:
            return await RoutedCapturer(browser, sibling_probe=SiblingProbe(fetch, timeout_s=180)).capture(
                site.url(CITED)
            )
        finally:
            await browser.aclose()


async def test_page_equal_to_a_random_sibling_is_a_soft_404(browser_program: Path) -> None:
    def nothing(visit: Visit) -> Reply:
        return Reply.html(NOTHING.replace("PLACE", visit.path))

    async with StandInWeb(default_answer=nothing) as site:
        seen = await _seen(site, browser_program)
        assert len([visit for visit in site.visits if visit.path.startswith("/songs/")]) == 2
    assert seen.outcome is CaptureOutcome.SOFT_404
    assert "a random sibling URL shows the same content" in seen.detail
    assert seen.screenshots
