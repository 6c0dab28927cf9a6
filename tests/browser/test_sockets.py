"""Text received over a WebSocket, which the virtual time of the browser does not accelerate."""

from __future__ import annotations

import asyncio
import base64
import hashlib

import pytest

from cache.backends.patchright import BrowserCapturer
from cache.capture import CaptureOutcome
from cache.egress.proxy import EgressProxy
from tests.browser.conftest import Rig
from tests.fakes.sandbox import is_sandbox_missing
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROSE = "<h1>Scores</h1><p>" + "Words that can be read by anybody. " * 20 + "</p><p id=out></p>"
_ACCEPTS = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def _send_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Accept a WebSocket, send one word after two seconds, and stay connected."""
    head = await reader.readuntil(b"\r\n\r\n")
    key = next(line.split()[1] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
    accept = base64.b64encode(hashlib.sha1(key + _ACCEPTS).digest())
    writer.write(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    writer.write(b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    await asyncio.sleep(2)
    writer.write(b"\x81\x04LATE")
    await reader.read()
    writer.close()


async def test_text_from_a_websocket_is_waited_for(rig: Rig) -> None:
    server = await asyncio.start_server(_send_late, "127.0.0.1", 0)
    place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    script = f"new WebSocket('ws://{place}/').onmessage = (e) => {{ out.textContent = e.data }}"
    rig.site.pages["/socket"] = Reply.html(f"{PROSE}<script>{script}</script>")
    async with server, EgressProxy(frozenset({rig.site.host_port, place})) as proxy:
        capturer = BrowserCapturer(
            rig.capturer.executable,
            proxy,
            semaphore=asyncio.Semaphore(1),
            deadline_s=90,
            allow_unsandboxed=is_sandbox_missing(),
        )
        try:
            seen = await capturer.capture(rig.site.url("/socket"))
        finally:
            await capturer.aclose()
    assert seen.outcome is CaptureOutcome.OK
    assert "LATE" in seen.text
