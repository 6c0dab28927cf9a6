"""Detection of soft 404s by comparison with a random sibling URL on the same site."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from cache.backends.http import HttpCapturer
from cache.backends.router import RoutedCapturer, SiblingProbe
from cache.capture import CaptureOutcome, Observation
from cache.egress.proxy import EgressProxy
from tests.standin.web import Answer, Reply, StandInWeb, Visit

CITED = "/songs/2020/a-song-of-ours"
ARTICLE = "<title>Lamps</title><h1>Lamps of the harbour</h1><p>" + "They were lit by hand until 1931. " * 20
FRONT = "<title>The Harbour Post</title><h1>Today</h1><p>" + "Ships that came in this morning, and their cargo. " * 8
GONE = "<title>Not Found | Songs</title><h1>Not Found</h1><p>Nothing is kept under {} since the move. Try the index."
SONG = (
    "<title>Not Found</title><h1>Not Found</h1><p>The second single of the quartet, written on a night train. "
    "It was recorded in a barn near the coast and came out in May 2019, with a B-side that nobody remembers."
)


class Site(StandInWeb):
    """Server with one answer rule for all URLs. It records requests for URLs other than the cited one."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(default_answer=answer)

    def probes(self, *known: str) -> list[str]:
        return [visit.path for visit in self.visits if visit.path not in {CITED, *known}]


async def _capture(site: StandInWeb, path: str = CITED, *, deadline_s: float = 60.0) -> Observation:
    async with EgressProxy(frozenset({site.host_port})) as proxy:
        return await _capturer(proxy, deadline_s=deadline_s).capture(site.url(path))


def _capturer(
    proxy: EgressProxy, *, deadline_s: float = 60.0, within_s: float = 60.0, max_bytes: int = 100_000
) -> RoutedCapturer:
    """Return a capturer. ``deadline_s`` limits one request for the sibling, ``within_s`` the whole probe."""
    slots = asyncio.Semaphore(2)
    fetch = HttpCapturer(proxy, semaphore=slots, deadline_s=deadline_s, max_bytes=max_bytes)
    return RoutedCapturer(
        HttpCapturer(proxy, semaphore=slots, deadline_s=60), sibling_probe=SiblingProbe(fetch, timeout_s=within_s)
    )


def _site_with_404s(cited: Reply) -> Callable[[Visit], Reply]:
    """Return the answers of a site that serves the cited page and a 404 for all other URLs."""
    return lambda visit: cited if visit.path == CITED else Reply.html("no", status=404)


async def test_site_that_returns_200_not_found_for_everything_is_soft_404() -> None:
    async with Site(lambda visit: Reply.html(GONE.format(visit.path))) as site:
        seen = await _capture(site)
        [probe] = site.probes()
    assert seen.outcome is CaptureOutcome.SOFT_404
    assert seen.detail == "headline 'Not Found | Songs'; a random sibling URL shows the same content (1.00)"
    assert probe.startswith("/songs/2020/")
    assert len(probe.rpartition("/")[2]) >= 16


@pytest.mark.parametrize("status", [404, 410])
async def test_short_page_with_error_title_is_ok_only_if_sibling_is_404(status: int) -> None:
    async with Site(lambda visit: Reply.html(SONG if visit.path == CITED else ARTICLE)) as dishonest:
        assert (await _capture(dishonest)).outcome is CaptureOutcome.SOFT_404
    missing = Reply.html("no", status=status)
    async with Site(lambda visit: Reply.html(SONG) if visit.path == CITED else missing) as honest:
        seen = await _capture(honest)
        assert len(honest.probes()) == 1
    assert seen.outcome is CaptureOutcome.OK
    assert f"a random sibling URL returns {status}" in seen.detail


async def test_page_with_error_text_is_soft_404_even_if_sibling_is_404() -> None:
    page = "<title>Page not found</title><h1>Page not found</h1><p>" + "Here are songs that others like. " * 9
    async with Site(_site_with_404s(Reply.html(page))) as site:
        seen = await _capture(site)
        assert len(site.probes()) == 1
    assert seen.outcome is CaptureOutcome.SOFT_404
    assert "returns 404" in seen.detail


async def test_site_that_redirects_everything_to_home_is_soft_404() -> None:
    async with Site(lambda visit: Reply.html(FRONT) if visit.path == "/" else Reply.redirect("/")) as site:
        deep, shallow = await _capture(site), await _capture(site, "/a-song")
        front = await _capture(site, "/")
        assert len(site.probes("/", "/a-song")) == 2
    assert deep.outcome is shallow.outcome is CaptureOutcome.SOFT_404
    assert "redirects to the same URL" in deep.detail
    assert front.outcome is CaptureOutcome.OK


@pytest.mark.parametrize(
    "beside",
    [
        Reply.html("no", status=403),
        Reply.html(SONG, delay_s=3600),
        Reply.html("<p>" + "x " * 200_000),
        Reply.html(ARTICLE),
    ],
    ids=["403", "silence", "too much", "something else"],
)
async def test_inconclusive_sibling_answer_keeps_soft_404(beside: Reply) -> None:
    deadline_s = 1.0 if beside.delay_s else 60.0
    async with Site(lambda visit: Reply.html(SONG) if visit.path == CITED else beside) as site:
        seen = await _capture(site, deadline_s=deadline_s)
        assert len({path for path in site.probes() if path.startswith("/songs")}) == 1
    assert seen.outcome is CaptureOutcome.SOFT_404
    assert "a random sibling URL" in seen.detail


async def test_probe_redirect_to_private_network_is_blocked() -> None:
    async with StandInWeb({"/": Reply.html(SONG)}) as internal:

        def lure(visit: Visit) -> Reply:
            return Reply.html(SONG) if visit.path == CITED else Reply.redirect(internal.url("/"))

        async with Site(lure) as site:
            seen = await _capture(site)
            assert len(site.probes()) == 1
        assert internal.connections == 0
    assert seen.outcome is CaptureOutcome.SOFT_404
    assert "egress_denied" in seen.detail
