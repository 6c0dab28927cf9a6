"""Page faults by number of the fault matrix: each ends in time with a named outcome."""

# ruff: noqa: E501 - markup and scripts are easier to read in one piece

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from cache.backends.http import HttpCapturer
from cache.backends.patchright import BrowserCapturer
from cache.capture import CaptureOutcome, Capturer, Observation
from cache.egress.proxy import EgressProxy
from tests.browser.conftest import Rig
from tests.fakes.sandbox import is_sandbox_missing
from tests.standin.tls import untrusted_server_context
from tests.standin.web import Reply, StandInWeb, Visit

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MIB = 1024 * 1024
PROSE = "<h1>A page</h1><p>" + "Words that can be read by anybody. " * 20 + "</p>"
HTML = "text/html; charset=utf-8"
KINDS = pytest.mark.parametrize("kind", ["browser", "http"])

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def _raw_server(serve: Serve) -> AsyncIterator[str]:
    """Run a server that reads the head of a request and then calls ``serve``; yield its ``host:port``."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@asynccontextmanager
async def _capturing(
    rig: Rig, proxy: EgressProxy, kind: str = "browser", *, deadline_s: float = 60
) -> AsyncIterator[Capturer]:
    slots = asyncio.Semaphore(3)
    capturer: Capturer = (
        HttpCapturer(proxy, semaphore=slots, deadline_s=deadline_s)
        if kind == "http"
        else BrowserCapturer(
            rig.capturer.executable,
            proxy,
            semaphore=slots,
            deadline_s=deadline_s,
            allow_unsandboxed=is_sandbox_missing(),
        )
    )
    try:
        yield capturer
    finally:
        await capturer.aclose()


async def _seen(rig: Rig, place: str, kind: str = "browser", *, deadline_s: float | None = None) -> Observation:
    """Capture the page of a local server: with the shared browser, unless there is a deadline."""
    if kind == "browser" and deadline_s is None:
        rig.allow(place)
        return await rig.capturer.capture(f"http://{place}/")
    async with (
        EgressProxy(frozenset({place})) as proxy,
        _capturing(rig, proxy, kind, deadline_s=deadline_s or 60) as capturer,
    ):
        return await capturer.capture(f"http://{place}/")


# ---- F21: a page that never finishes ---------------------------------------------------------------------------


async def test_f21_endless_slow_response_is_partial_with_a_detail(rig: Rig) -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {HTML}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for piece in [PROSE, *["<p>and more</p>"] * 10_000]:
            writer.write(f"{len(piece):x}\r\n{piece}\r\n".encode())
            await writer.drain()
            await asyncio.sleep(0.05)

    async with _raw_server(trickle) as place:
        seen = await _seen(rig, place, deadline_s=20)
        silent = await _seen(rig, place, "http", deadline_s=2)
    assert seen.outcome is CaptureOutcome.PARTIAL
    assert "Words that can be read" in seen.text
    assert seen.detail
    assert silent.outcome is CaptureOutcome.TIMEOUT


# ---- F22, F23: size limits ------------------------------------------------------------------------------------


@KINDS
async def test_f22_hundred_megabytes_are_cut_at_the_limit(rig: Rig, kind: str) -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {HTML}\r\n\r\n{PROSE}".encode())
        for _ in range(100):
            writer.write(b"<p>" + b"x " * (MIB // 2) + b"</p>")
            await writer.drain()
            sent += 1
            if sent > 25:  # above the limit, so that a busy browser has time to stop the server
                await asyncio.sleep(0.5)

    async with _raw_server(pour) as place:
        seen = await _seen(rig, place, kind, deadline_s=60)
    assert seen.outcome is CaptureOutcome.TOO_LARGE, seen.detail
    assert "bytes of content" in seen.detail, "not another limit"
    assert sent < 60, "the server was stopped"


# ---- F25: a page of a million pixels ------------------------------------------------------------------------------


# ---- F26: the browser itself ------------------------------------------------------------------------------------


async def test_f26_busy_pages_end_without_affecting_other_pages(rig: Rig) -> None:
    rig.site.pages |= {
        "/busy": Reply.html(PROSE + "<script>for (;;) {}</script>"),
        "/calm": Reply.html(PROSE),
        "/busy-later": Reply.html(PROSE + "<script>setTimeout(() => { for (;;) {} }, 300)</script>"),
    }
    async with EgressProxy(frozenset({rig.site.host_port})) as proxy, _capturing(rig, proxy, deadline_s=60) as capturer:
        *busy, calm = await asyncio.gather(
            *(capturer.capture(rig.site.url(path)) for path in ("/busy", "/busy-later", "/calm"))
        )
        after = await capturer.capture(rig.site.url("/calm"))
    assert {each.outcome for each in busy} <= {CaptureOutcome.PARTIAL, CaptureOutcome.TIMEOUT}
    assert calm.is_evidence
    assert after.is_evidence


async def test_f26_page_that_uses_too_much_memory_is_stopped(rig: Rig) -> None:
    eats = "<script>const all = []; setInterval(() => { for (let n = 0; n < 40; n++) all.push(new Uint8Array(1e7).fill(1)) }, 20)</script>"
    rig.site.pages |= {"/eats": Reply.html(PROSE + eats), "/calm": Reply.html(PROSE)}
    async with EgressProxy(frozenset({rig.site.host_port})) as proxy, _capturing(rig, proxy, deadline_s=90) as capturer:
        seen = await capturer.capture(rig.site.url("/eats"))
        after = await capturer.capture(rig.site.url("/calm"))
    assert (seen.outcome, seen.detail) == (CaptureOutcome.TOO_LARGE, "the page took too much memory")
    assert after.outcome is CaptureOutcome.OK


async def test_f26_renderer_that_always_crashes_is_a_crash_after_two_attempts(rig: Rig) -> None:
    async with EgressProxy(frozenset({rig.site.host_port})) as proxy, _capturing(rig, proxy, deadline_s=90) as capturer:

        def kill(visit: Visit) -> Reply:
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "--type=renderer" in " ".join(process.cmdline()):
                        process.kill()
            return Reply(body=b"", delay_s=1)

        rig.site.pages |= {"/dies": Reply.html(PROSE + "<img src='/kill'>"), "/kill": kill, "/calm": Reply.html(PROSE)}
        rig.site.hits.clear()
        seen = await capturer.capture(rig.site.url("/dies"))
        after = await capturer.capture(rig.site.url("/calm"))
    assert seen.outcome is CaptureOutcome.CRASH
    assert rig.site.hits["/dies"] == 2
    assert after.outcome is CaptureOutcome.OK


# ---- F27: redirects ----------------------------------------------------------------------------------------------


# ---- F28: names, connections, certificates -------------------------------------------------------------------------


async def test_f28_page_with_a_lost_connection_is_partial_with_a_detail(rig: Rig) -> None:
    was_shown = asyncio.Event()

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = f"{PROSE * 99}<img src='{rig.site.url('/shown')}'>"
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {HTML}\r\nContent-Length: 999999\r\n\r\n{body}".encode())
        await writer.drain()
        await was_shown.wait()
        writer.transport.abort()

    def shown(visit: Visit) -> Reply:
        was_shown.set()  # the browser has read all of the text
        return Reply(status=404)

    rig.site.pages["/shown"] = shown
    async with _raw_server(reset) as place:
        seen = await _seen(rig, place)
    assert seen.outcome is CaptureOutcome.PARTIAL
    assert "broke off" in seen.detail
    assert "Words that can be read" in seen.text


@pytest.mark.parametrize(("kind", "how"), [("browser", "expired"), ("browser", "wrong-host"), ("http", "expired")])
async def test_f28_invalid_certificate_is_a_tls_error(rig: Rig, kind: str, how: str, tmp_path: Path) -> None:
    context = untrusted_server_context(
        tmp_path, expired=how == "expired", host="other.test" if how == "wrong-host" else "localhost"
    )
    async with StandInWeb({"/": Reply.html(PROSE)}, tls=context) as site:
        rig.allow(place := f"localhost:{site.port}")
        capturer = rig.capturer if kind == "browser" else HttpCapturer(rig.proxy, semaphore=asyncio.Semaphore(1))
        seen = await capturer.capture(f"https://{place}/")
        assert seen.outcome is CaptureOutcome.TLS_ERROR
        assert seen.detail
        assert sum(site.hits.values()) == 0


# ---- F29: statuses ------------------------------------------------------------------------------------------------


STATUSES = {
    401: CaptureOutcome.LOGIN_WALL,
    404: CaptureOutcome.HTTP_ERROR,
    429: CaptureOutcome.BLOCKED,
    451: CaptureOutcome.HTTP_ERROR,
    503: CaptureOutcome.HTTP_ERROR,
}


@KINDS
async def test_f29_http_status_determines_the_outcome_and_is_recorded(rig: Rig, kind: str) -> None:
    capturer = rig.capturer if kind == "browser" else HttpCapturer(rig.proxy, semaphore=asyncio.Semaphore(1))
    for status, outcome in STATUSES.items():
        headers = {"Content-Type": HTML, "Retry-After": "7"}
        body = f"<h1>{status}</h1>{PROSE}".encode()
        rig.site.pages[f"/status-{status}"] = Reply(status=status, headers=headers, body=body)
        seen = await capturer.capture(rig.site.url(f"/status-{status}"))
        assert (seen.outcome, seen.http_status, seen.gone) == (outcome, status, status == 404)
        assert seen.headers["retry-after"] == "7"
