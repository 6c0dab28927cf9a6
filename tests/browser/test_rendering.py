"""Supplied HTML, rendered by a real browser without a network."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cache.blobs import BlobStore
from cache.capture import CaptureOutcome
from cache.capture_index import MemoryIndex
from cache.pages import PageCache
from cache.sources.supplied import store_supplied, supplied_pages
from tests.browser.conftest import Rig, counting_packets
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROSE = "<p>" + "Ada Lovelace wrote the first program in 1843, for a machine that was never built. " * 8 + "</p>"
URL = "https://never-asked.example/ada"


async def test_visible_text_and_screenshot_are_those_of_the_given_html(rig: Rig) -> None:
    html = f"<title>Ada</title><style>.x{{display:none}}</style><h1>Ada</h1>{PROSE}<p class=x>secret</p>"
    html += "<p id=late></p><script>late.textContent = 'written by a script'</script>"
    seen = await rig.capturer.render(URL, html.encode())
    assert (seen.outcome, seen.final_url, seen.title) == (CaptureOutcome.OK, URL, "Ada")
    assert seen.text.startswith("# Ada\n\nAda Lovelace wrote")
    assert "written by a script" in seen.text
    assert "secret" not in seen.text
    assert len(seen.screenshots) == 1


@pytest.mark.parametrize(
    "extra",
    [
        "<img src='{site}/x.png'><link rel=stylesheet href='{site}/x.css'><script src='{site}/x.js'></script>",
        "<iframe src='{site}/frame'></iframe><object data='{site}/frame'></object>",
        "<script>fetch('{site}/x').catch(() => 0); new WebSocket('{site}/x'.replace('http', 'ws'))</script>",
        "<script>location.href = '{site}/away'</script>",
        "<meta http-equiv=refresh content='0;url={site}/away'>",
        "<script>window.open('{site}/window'); navigator.sendBeacon('{site}/beacon', 'x')</script>",
        "<form action='{site}/form' id=f></form><script>f.submit()</script>",
    ],
)
async def test_nothing_is_requested(rig: Rig, extra: str) -> None:
    for path in ("/x.png", "/x.css", "/x.js", "/frame", "/x", "/away", "/window", "/beacon", "/form"):
        rig.site.pages[path] = Reply.html("<h1>From the network</h1>")
    rig.site.hits.clear()
    html = f"<!doctype html><title>Ada</title><h1>Ada</h1>{PROSE}{extra.format(site=rig.site.url(''))}"
    seen = await rig.capturer.render(rig.site.url("/ada"), html.encode())
    assert dict(rig.site.hits) == {}
    assert seen.outcome in (CaptureOutcome.OK, CaptureOutcome.PARTIAL), seen.detail
    assert "Ada Lovelace wrote" in seen.text
    assert "From the network" not in seen.text


async def test_no_packet_leaves_over_webrtc(rig: Rig) -> None:
    async with counting_packets() as (port, packets):
        script = (
            f"const c = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}});"
            "c.createDataChannel('x'); c.createOffer().then(o => c.setLocalDescription(o))"
        )
        await rig.capturer.render(URL, f"<h1>Ada</h1>{PROSE}<script>{script}</script>".encode())
        assert packets.received == 0


async def test_supplied_html_is_rendered_once_and_used_as_it_is_if_nothing_is_visible(rig: Rig) -> None:
    cache = PageCache(rig.capturer, BlobStore.open("memory://"), MemoryIndex(), renderer=rig.capturer)
    shown = f"<h1>Ada</h1>{PROSE}<p style='display:none'>secret"
    records = [
        ("0", {"url": URL, "html": shown, "title": "Agent's title"}),
        ("1", {"url": f"{URL}/2", "text": "Hello"}),
    ]
    supplied = await store_supplied(
        supplied_pages(records, supplier="supplied by the agent", now=datetime.now(UTC)).values(), cache, owner="me"
    )
    page, text = [await cache.rendered(each) for each in supplied]
    assert text is supplied[1]
    assert (page.source.value, page.owner, page.title) == ("supplied", "me", "Agent's title")
    assert page.provenance == supplied[0].provenance
    assert page.backend.startswith("browser:")
    assert page.screenshot_names
    evidence = await cache.evidence(page)
    assert "Ada Lovelace wrote" in evidence.text
    assert "secret" not in evidence.text
    assert (await cache.rendered(supplied[0])).id == page.id
    assert await cache.stored(URL, owner="me") is None
