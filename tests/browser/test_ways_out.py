"""Ways out of a page that bypass the proxy: each is closed, and the contacted servers count connections."""

# ruff: noqa: E501 - markup and scripts are easier to read in one piece

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

from cache.capture import CaptureOutcome
from tests.browser.conftest import Rig, counting_packets
from tests.fakes.processes import command_line, descendants
from tests.standin.web import Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROSE = "<h1>A page</h1><p>" + "Words that can be read by anybody. " * 20 + "</p><p id=said aria-busy=true>Loading…</p>"
SAY = "const say = (text) => { said.removeAttribute('aria-busy'); said.textContent = 'SAID ' + text };"


async def _reported(rig: Rig, script: str, path: str = "/says") -> str:
    """Return the text that a page's script passes to ``say``."""
    seen = await rig.show(path, Reply.html(f"{PROSE}<script>{SAY}{script}</script>"))
    assert seen.outcome is CaptureOutcome.OK
    found = re.search(r"SAID (.*)", seen.text)
    assert found, f"the page never came to its word: {seen.text[-200:]}"
    return found[1]


async def test_webrtc_sends_no_packet_and_learns_no_address(rig: Rig) -> None:
    async with counting_packets() as (port, packets):
        said = await _reported(
            rig,
            f"const pc = new RTCPeerConnection({{ iceServers: [{{ urls: 'stun:127.0.0.1:{port}' }},"
            f"{{ urls: 'turn:127.0.0.1:{port}', username: 'u', credential: 'c' }}] }}); const found = [];"
            "pc.onicecandidate = (e) => { if (e.candidate) found.push(e.candidate.candidate) };"
            "pc.createDataChannel('c'); pc.createOffer().then((o) => pc.setLocalDescription(o));"
            "setTimeout(() => say(`${found.filter((c) => /udp/i.test(c)).length} addresses`), 3000)",
        )
    assert said == "0 addresses"
    assert packets.received == 0


async def test_quic_is_disabled_and_not_used_when_offered(rig: Rig) -> None:
    async with counting_packets() as (port, packets):
        offer = {"Content-Type": "text/html", "Alt-Svc": f'h3="127.0.0.1:{port}"; ma=86400'}
        rig.site.pages["/offered"] = Reply(headers=offer, body=b"more")
        body = f"{PROSE}<iframe src='/offered'></iframe><iframe src='/offered?2'></iframe>".replace(
            "aria-busy=true", ""
        )
        await rig.show("/offers-quic", Reply(headers=offer, body=body.encode()))
    assert packets.received == 0
    assert [command for command in _commands() if "--disable-quic" in command]


async def test_no_service_worker_is_registered(rig: Rig) -> None:
    rig.site.pages["/sw.js"] = Reply(headers={"Content-Type": "text/javascript"}, body=b"self.onfetch = () => 0")
    said = await _reported(
        rig,
        "const sw = navigator.serviceWorker; if (!sw) say('none'); else Promise.race([sw.register('/sw.js'), new Promise("
        "(r, no) => setTimeout(() => no(Error('never')), 1500))]).then((r) => say(r && r.active ? 'active' : 'none'), () => say('none'))",
    )
    assert said == "none"


async def test_no_file_is_downloaded(rig: Rig) -> None:
    name = "assay-downloaded-canary.bin"
    rig.site.pages["/file"] = Reply(
        headers={"Content-Type": "application/octet-stream", "Content-Disposition": f"attachment; filename={name}"},
        body=b"\x00\x01" * 500,
    )
    await _reported(
        rig,
        "const a = document.createElement('a'); a.href = '/file'; a.download = 'x.bin'; document.body.append(a); a.click();"
        "const b = document.createElement('a'); b.href = URL.createObjectURL(new Blob(['canary'])); b.download = "
        f"'{name}'; document.body.append(b); b.click(); setTimeout(() => say('clicked'), 1000)",
    )
    found = []
    for place in (tempfile.gettempdir(), str(Path.home())):
        for folder, folders, files in os.walk(place):  # os.walk skips folders that disappear meanwhile
            folders[:] = [each for each in folders if not each.startswith("pytest-of-")]  # folders of other tests
            found += [f"{folder}/{file}" for file in files if "downloaded-canary" in file]
    assert found == []


def _commands() -> list[str]:
    """Return the command lines of all processes below this one."""
    return [command_line(process) for process in descendants()]
