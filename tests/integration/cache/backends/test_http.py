"""Capturing without a browser, through the egress proxy, from scripted servers."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest

from cache.backends.http import HttpCapturer
from cache.capture import CaptureOutcome
from cache.egress.proxy import EgressProxy
from tests.standin.web import Answer, Reply, StandInWeb

ARTICLE = "<title>Ada</title><h1>Ada Lovelace</h1><p>" + "She wrote the first program in 1843. " * 20 + "</p>"


@pytest.fixture
async def site() -> AsyncIterator[StandInWeb]:
    async with StandInWeb() as web:
        yield web


@pytest.fixture
async def capturer(site: StandInWeb) -> AsyncIterator[HttpCapturer]:
    async with EgressProxy(frozenset({site.host_port})) as proxy:
        yield HttpCapturer(proxy, semaphore=asyncio.Semaphore(5), deadline_s=60)


async def test_article_is_evidence_with_status_links_and_html(site: StandInWeb, capturer: HttpCapturer) -> None:
    site.pages["/ada"] = Reply.html(ARTICLE + "<a href='/more'>More</a>")
    seen = await capturer.capture(site.url("/ada"))
    assert (seen.outcome, seen.http_status, seen.title) == (CaptureOutcome.OK, 200, "Ada")
    assert "# Ada Lovelace" in seen.text
    assert seen.links == (("More", site.url("/more")),)
    assert seen.html is not None
    assert seen.headers["content-type"] == "text/html; charset=utf-8"
    assert seen.screenshots == ()
    assert site.hits["/ada"] == 1


async def test_redirects_are_followed_and_recorded(site: StandInWeb, capturer: HttpCapturer) -> None:
    site.pages |= {"/a": Reply.redirect("/b"), "/b": Reply.redirect("/c"), "/c": Reply.html(ARTICLE)}
    seen = await capturer.capture(site.url("/a"))
    assert seen.outcome is CaptureOutcome.OK
    assert seen.final_url == site.url("/c")
    assert seen.chain == (site.url("/a"), site.url("/b"), site.url("/c"))


async def test_truncated_gzip_page_is_partial(site: StandInWeb, capturer: HttpCapturer) -> None:
    headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
    packed = gzip.compress(ARTICLE.encode() * 50, compresslevel=0)
    site.pages["/a"] = Reply(headers=headers, body=packed[:-500])
    seen = await capturer.capture(site.url("/a"))
    assert (seen.outcome, seen.detail) == (CaptureOutcome.PARTIAL, "the server's response is incomplete")


@pytest.mark.parametrize(
    ("reply", "outcome", "gone"),
    [
        (Reply.html("gone", status=404), CaptureOutcome.HTTP_ERROR, True),
        (Reply.html("oops", status=500), CaptureOutcome.HTTP_ERROR, False),
        (Reply.html("no", status=403), CaptureOutcome.BLOCKED, False),
        (Reply.html("slow down", status=429), CaptureOutcome.BLOCKED, False),
        (Reply.html("who", status=401), CaptureOutcome.LOGIN_WALL, False),
        (Reply.html("<p hidden>hi"), CaptureOutcome.EMPTY, False),
        (Reply.redirect("/page"), CaptureOutcome.REDIRECT_LOOP, False),
        (Reply.redirect("file:///etc/passwd"), CaptureOutcome.EGRESS_DENIED, False),
        (Reply.redirect("http://169.254.169.254/latest/"), CaptureOutcome.EGRESS_DENIED, False),
        (Reply.redirect("data:text/html,<h1>hi"), CaptureOutcome.EGRESS_DENIED, False),
        (Reply(headers={"Content-Type": "text/plain"}, body=b"PK\x03\x04\x14\x00"), CaptureOutcome.UNSUPPORTED, False),
        (Reply(headers={"Content-Type": "text/html"}, body=bytes(range(256)) * 9), CaptureOutcome.DAMAGED, False),
        (Reply.redirect("http://nowhere.invalid/"), CaptureOutcome.DNS_ERROR, True),
        (Reply(body=b"x", hang=True), CaptureOutcome.TIMEOUT, False),
    ],
)
async def test_response_has_the_expected_outcome(
    site: StandInWeb, reply: Answer, outcome: CaptureOutcome, gone: bool
) -> None:
    site.pages["/page"] = reply
    deadline_s = 1 if outcome is CaptureOutcome.TIMEOUT else 60
    async with EgressProxy(frozenset({site.host_port})) as proxy:
        capturer = HttpCapturer(proxy, semaphore=asyncio.Semaphore(1), deadline_s=deadline_s)
        seen = await capturer.capture(site.url("/page"))
    assert (seen.outcome, seen.gone) == (outcome, gone)
    assert seen.detail
    assert not seen.is_evidence


async def test_gzip_bomb_is_too_large(site: StandInWeb, capturer: HttpCapturer) -> None:
    bomb = gzip.compress(bytes(60_000_000))
    site.pages["/bomb"] = Reply(headers={"Content-Type": "text/html", "Content-Encoding": "gzip"}, body=bomb)
    assert (await capturer.capture(site.url("/bomb"))).outcome is CaptureOutcome.TOO_LARGE
