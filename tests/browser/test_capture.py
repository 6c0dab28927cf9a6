"""Evidence from captures by a real browser."""

from __future__ import annotations

import asyncio
import gzip
import io

import pytest
from PIL import Image

from cache.backends.patchright import BrowserCapturer
from cache.capture import CaptureOutcome, PageKind
from cache.page_text.screenshot_parts import join_tiles
from tests.browser.conftest import Rig
from tests.fakes.sandbox import is_sandbox_missing
from tests.standin.documents import image_bytes, image_size, pdf_with_pages
from tests.standin.web import Answer, Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROSE = "<p>" + "Ada Lovelace wrote the first program in 1843, for a machine that was never built. " * 8 + "</p>"


def _page(extra: str = "", *, title: str = "Ada") -> Reply:
    return Reply.html(f"<!doctype html><title>{title}</title><h1>Ada Lovelace</h1>{PROSE}{extra}")


async def test_capture_has_text_links_html_headers_and_versions(rig: Rig) -> None:
    seen = await rig.show("/ada", _page("<a href='/more'>More</a>"))
    assert (seen.outcome, seen.http_status, seen.title) == (CaptureOutcome.OK, 200, "Ada")
    assert seen.text.startswith("# Ada Lovelace\n\nAda Lovelace wrote")
    assert seen.links == (("More", rig.site.url("/more")),)
    assert seen.final_url == rig.site.url("/ada")
    assert seen.chain == (rig.site.url("/ada"),)
    assert seen.headers["content-type"] == "text/html; charset=utf-8"
    assert seen.html is not None
    assert b"<h1>Ada Lovelace</h1>" in seen.html
    assert {"patchright", "browser", "sandbox"} <= set(seen.versions)
    assert seen.versions["sandbox"] == ("off" if is_sandbox_missing() else "on")
    assert rig.site.hits["/ada"] == 1


async def test_screenshot_is_a_jpeg_of_the_whole_page_within_limits(rig: Rig) -> None:
    seen = await rig.show("/tall", _page("<div style='height:20000px;background:linear-gradient(red,blue)'>.</div>"))
    sizes = [image_size(shot) for shot in seen.screenshots]
    assert [width for width, _ in sizes] == [1100, 1100], "a page above 6,000 px comes in tiles"
    assert all(height <= 6000 for _, height in sizes)
    assert 9_900 <= sum(height for _, height in sizes) <= 10_000
    whole = join_tiles(seen.screenshots)
    assert whole is not None
    picture = Image.open(io.BytesIO(whole))
    assert (picture.format, picture.height) == ("JPEG", sum(height for _, height in sizes))
    column = picture.convert("RGB").crop((900, 0, 901, picture.height)).tobytes()
    reds = [column[3 * y] for y in range(100, picture.height, 400)]
    assert reds == sorted(reds, reverse=True), "red turns to blue once, from top to bottom"
    assert reds[0] - reds[-1] > 100


LATE_PAGES: dict[str, str] = {
    "a timer of five seconds": "<script>setTimeout(() => document.body.append('LATE'), 5000)</script>",
    "a slow request and then a timer": "<script>setTimeout(async () => { const r = await fetch('/slow');"
    "const text = await r.text(); setTimeout(() => document.body.append(text), 900) }, 800)</script>",
    "a chain of slow requests": "<script>(async () => { let text = ''; for (let n = 0; n < 14; n++)"
    "text = await (await fetch('/slow?' + n)).text(); document.body.append(text) })()</script>",
    "while another request never ends": "<script>fetch('/never');"
    "setTimeout(() => document.body.append('LATE'), 3000)</script>",
    "a worker that nothing on the page speaks of": "<p id=out></p><script>"
    "const w = new Worker(URL.createObjectURL(new Blob([\"setTimeout(() => postMessage('LATE'), 2500)\"])));"
    "w.onmessage = (e) => { out.textContent = e.data }</script>",
    "an inner frame": '<iframe width=400 height=100 srcdoc="<script>'
    "setTimeout(() => document.body.append('LATE'), 4000)"
    '</script>"></iframe>',
    "an open shadow root": "<div id=host></div><script>const root = host.attachShadow({ mode: 'open' });"
    "setTimeout(() => { root.innerHTML = '<p>LATE</p>' }, 2000)</script>",
}


async def test_text_that_appears_late_is_in_the_evidence(rig: Rig) -> None:
    rig.site.pages["/slow"] = Reply(body=b"LATE", delay_s=0.8)
    rig.site.pages["/never"] = Reply(body=b"", delay_s=60)
    shown = [rig.show(f"/late-{nth}", _page(page)) for nth, page in enumerate(LATE_PAGES.values())]
    for how, seen in zip(LATE_PAGES, await asyncio.gather(*shown), strict=True):
        assert (seen.outcome, len(seen.screenshots)) == (CaptureOutcome.OK, 1), how
        assert "LATE" in seen.text, how
        assert "could not be loaded" not in seen.detail, how


LAZY_PAGES: dict[str, str] = {
    "on intersection": "new IntersectionObserver((seen, all) => seen.filter((e) => e.isIntersecting).forEach((e) => {"
    "e.target.textContent = 'ITEM ' + e.target.id; all.unobserve(e.target) }))",
    "on scroll": "({ observe: (el) => addEventListener('scroll', () => {"
    "if (el.getBoundingClientRect().top < innerHeight) el.textContent = 'ITEM ' + el.id }) })",
}


@pytest.mark.parametrize("how", LAZY_PAGES)
async def test_lazily_loaded_parts_are_in_the_evidence(rig: Rig, how: str) -> None:
    script = (
        f"<script>const watch = {LAZY_PAGES[how]};"
        "for (let n = 0; n < 12; n++) { const el = document.createElement('p'); el.id = n;"
        "el.style.height = '1200px'; document.body.append(el); watch.observe(el) }</script>"
    )
    seen = await rig.show("/lazy", _page(script))
    assert [f"ITEM {n}" in seen.text.splitlines() for n in range(12)] == [True] * 12


async def test_pdf_is_read_with_any_content_type(rig: Rig) -> None:
    for content_type, requests in (("application/octet-stream", 1), ("text/html", 2)):
        path = f"/paper-{requests}"
        seen = await rig.show(path, Reply(headers={"Content-Type": content_type}, body=pdf_with_pages(2)))
        assert (seen.outcome, seen.kind, seen.http_status) == (CaptureOutcome.OK, PageKind.PDF, 200)
        assert "Page number 2 is visible" in seen.text
        assert len(seen.screenshots) == 2
        # One request is enough, unless the server declares HTML.
        assert rig.site.hits[path] == requests


@pytest.mark.parametrize(
    ("headers", "body", "kind", "text"),
    [
        ({"Content-Type": "application/pdf"}, _page().body, PageKind.WEB, "# Ada Lovelace"),
        (
            {"Content-Type": "text/csv", "Content-Disposition": "attachment"},
            b"born,1815\n" * 20,
            PageKind.TEXT,
            "born,1815",
        ),
        (
            {"Content-Type": "text/plain", "Content-Encoding": "gzip"},
            gzip.compress(b"packed", mtime=0),
            PageKind.TEXT,
            "packed",
        ),
        ({"Content-Type": "image/png"}, image_bytes(300, 200), PageKind.IMAGE, ""),
    ],
)
async def test_other_content_types_are_pages_with_one_request(
    rig: Rig, headers: dict[str, str], body: bytes, kind: PageKind, text: str
) -> None:
    rig.site.hits.clear()
    seen = await rig.show("/thing", Reply(headers=headers, body=body))
    assert (seen.outcome, seen.kind) == (CaptureOutcome.OK, kind)
    assert seen.text.startswith(text)
    assert rig.site.hits["/thing"] == 1


ENDINGS: list[tuple[Answer, CaptureOutcome, bool]] = [
    (Reply.html("<h1>Not here</h1>", status=404), CaptureOutcome.HTTP_ERROR, True),
    (Reply(headers={"Content-Type": "text/plain"}, body=b"PK\x03\x04\x14\x00"), CaptureOutcome.UNSUPPORTED, False),
    (Reply.html("<h1>No</h1>", status=403), CaptureOutcome.BLOCKED, False),
    (Reply(status=204), CaptureOutcome.EMPTY, False),
    (Reply.redirect("http://nowhere.invalid/"), CaptureOutcome.DNS_ERROR, True),
    (Reply.redirect("http://169.254.169.254/latest/meta-data/"), CaptureOutcome.EGRESS_DENIED, False),
    (Reply.redirect("file:///etc/passwd"), CaptureOutcome.EGRESS_DENIED, False),
    (Reply.redirect("/circle"), CaptureOutcome.REDIRECT_LOOP, False),
    (
        Reply(
            headers={"Content-Type": "text/html", "Content-Encoding": "gzip"}, body=b"<p>This is not compressed." * 9
        ),
        CaptureOutcome.CONNECT_ERROR,
        False,
    ),
    (
        Reply.html("<h1>Page not found</h1><p>We are sorry. Try the search, or go back to the front page."),
        CaptureOutcome.SOFT_404,
        False,
    ),
    (
        Reply.html(
            "<h1>Sign in</h1><form><input name=u><input type=password><button>Sign in</button></form>"
            "<p>You need an account to read this page. It takes a minute."
        ),
        CaptureOutcome.LOGIN_WALL,
        False,
    ),
    (
        Reply.html(
            "<title>Just a moment...</title><form id='challenge-form'></form><p>Checking your browser"
            "<p>This takes a few seconds and happens by itself."
        ),
        CaptureOutcome.CAPTCHA,
        False,
    ),
]


async def test_response_that_is_not_a_page_has_its_own_outcome(rig: Rig) -> None:
    rig.site.pages["/circle"] = Reply.redirect("/circle")
    shown = [rig.show(f"/ending-{nth}", answer) for nth, (answer, _, _) in enumerate(ENDINGS)]
    for (answer, outcome, gone), seen in zip(ENDINGS, await asyncio.gather(*shown), strict=True):
        assert (seen.outcome, seen.gone) == (outcome, gone), answer
        assert seen.detail, answer
        assert "ERR_" not in seen.text and "root:" not in seen.text


async def test_navigation_by_script_does_not_replace_the_cited_page(rig: Rig) -> None:
    rig.site.pages["/other"] = Reply.html("<h1>IMPOSTOR</h1>" + PROSE)
    moves = (
        "<script>open('/other'); onkeydown = onscroll = () => open('/other'); setTimeout(() => open('/other'), 500);"
        "setTimeout(() => { location.href = '/other' }, 1500);"
        "setTimeout(() => location.replace('/other'), 4000)</script>"
    )
    seen = await rig.show("/cited", _page(moves))
    assert seen.outcome is CaptureOutcome.OK
    assert "IMPOSTOR" not in seen.text
    assert seen.final_url == rig.site.url("/cited")
    assert "/other" in seen.detail


async def test_page_that_only_redirects_is_followed(rig: Rig) -> None:
    rig.site.pages["/arrived"] = _page("<p>ARRIVED</p>")
    for how in (
        "<meta http-equiv=refresh content='0; url=/arrived'>",
        "<p>You are being redirected…</p><script>setTimeout(() => { location.href = '/arrived' }, 2000)</script>",
    ):
        seen = await rig.show("/sends-on", Reply.html(how))
        assert (seen.outcome, seen.final_url) == (CaptureOutcome.OK, rig.site.url("/arrived"))
        assert "ARRIVED" in seen.text
        assert seen.chain == (rig.site.url("/sends-on"), rig.site.url("/arrived"))


@pytest.mark.parametrize(
    ("target", "outcome", "gone"),
    [
        ("http://169.254.169.254/", CaptureOutcome.EGRESS_DENIED, False),
        ("https://nowhere.invalid/", CaptureOutcome.DNS_ERROR, True),
    ],
)
async def test_page_that_redirects_to_an_error_has_the_outcome_of_the_error(
    rig: Rig, target: str, outcome: CaptureOutcome, gone: bool
) -> None:
    seen = await rig.show("/sends-on", Reply.html(f"<p>One moment…<script>location.href = '{target}'</script>"))
    assert (seen.outcome, seen.gone) == (outcome, gone)
    assert "reached" not in seen.text


async def test_first_pages_of_a_browser_lose_no_resources(rig: Rig) -> None:
    """The network of a new browser must not change: Chromium fails requests that wait for a connection then."""
    scripts = "".join(f'<script src="/first/{number}.js"></script>' for number in range(150))
    rig.site.pages["/first"] = Reply.html(f"<p>{'The harbour board met. ' * 20}</p>{scripts}")
    for number in range(150):
        rig.site.pages[f"/first/{number}.js"] = Reply(
            headers={"Content-Type": "text/javascript"}, body=b"1", delay_s=0.02
        )
    capturer = BrowserCapturer(
        rig.capturer.executable, rig.proxy, semaphore=asyncio.Semaphore(4), allow_unsandboxed=is_sandbox_missing()
    )
    try:
        seen = await asyncio.gather(*(capturer.capture(rig.site.url(f"/first?{number}")) for number in range(4)))
    finally:
        await capturer.aclose()
    assert [(each.outcome, each.detail) for each in seen] == [(CaptureOutcome.OK, "")] * 4


async def test_user_agent_is_not_headless_and_contains_the_contact(rig: Rig) -> None:
    contact = "mailto:judge@example.org"
    capturer = BrowserCapturer(
        rig.capturer.executable,
        rig.proxy,
        semaphore=asyncio.Semaphore(1),
        allow_unsandboxed=is_sandbox_missing(),
        contact=contact,
    )
    rig.site.pages["/named"] = _page()
    try:
        seen = await capturer.capture(rig.site.url("/named"))
    finally:
        await capturer.aclose()
    named = next(visit for visit in reversed(rig.site.visits) if visit.path == "/named").headers["user-agent"]
    assert f"Chrome/{seen.versions['browser'].partition('.')[0]}." in named
    assert "Headless" not in named
    assert named.endswith(f"(+{contact})")
