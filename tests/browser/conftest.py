"""Egress proxy, browser and scripted site shared by all browser tests of a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from cache.backends.patchright import BrowserCapturer
from cache.capture import Observation
from cache.egress.proxy import EgressProxy, parse_host_port
from tests.fakes.sandbox import installed_browser, is_sandbox_missing
from tests.standin.web import Answer, StandInWeb


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """Site, egress proxy and capturer of a browser test. ``show`` serves a page on the site and captures it."""

    site: StandInWeb
    proxy: EgressProxy
    capturer: BrowserCapturer

    def allow(self, host_port: str) -> None:
        """Let the browser reach another local server."""
        self.proxy._allow |= {parse_host_port(host_port)}

    async def show(self, path: str, answer: Answer) -> Observation:
        self.site.pages[path] = answer
        return await self.capturer.capture(self.site.url(path))


class _Packets(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.received = 0

    def datagram_received(self, data: bytes, addr: object) -> None:
        self.received += 1


@asynccontextmanager
async def counting_packets() -> AsyncIterator[tuple[int, _Packets]]:
    """Yield a UDP port and a counter of the packets it receives."""
    loop = asyncio.get_running_loop()
    transport, packets = await loop.create_datagram_endpoint(_Packets, local_addr=("127.0.0.1", 0))
    try:
        yield transport.get_extra_info("sockname")[1], packets
    finally:
        transport.close()


@pytest.fixture(scope="session")
def browser_program() -> Path:
    program = installed_browser()
    if program is None:
        pytest.fail("no Chromium on this machine; `make setup` installs one")
    return program


@pytest.fixture(autouse=True, scope="session")
def patient_capturer() -> Iterator[None]:
    """Raise the time limits after which a capture goes on without a part of the page.

    On a busy machine the browser may not run for seconds. Limits that tests reach on purpose remain as they are.
    """
    limits = {
        "patchright._LAUNCH_MS": 120_000,
        "patchright._CLOSE_S": 30.0,
        "patchright._FRAME_ANSWER_S": 15.0,
        "readiness.LOAD_S": 30.0,
        "readiness._ADVANCE_REAL_S": 10.0,
        "readiness._MUCH_TEXT_REAL_S": 8.0,
        "readiness._EXTRAS_REAL_S": 6.0,
        "readiness._STUCK_REAL_S": 8.0,
        "readiness._SLOW_REQUEST_S": 8.0,
        "readiness._WAIT_REAL_S": 8.0,
        "readiness._FRAMES_MAX_S": 15.0,
        "visit._SHOT_S": 60.0,
    }
    with pytest.MonkeyPatch.context() as patch:
        for limit, value in limits.items():
            patch.setattr(f"cache.backends.{limit}", value)
        patch.setattr("cache.page_text.visible_text._FRAME_S", 30.0)
        yield


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def rig(browser_program: Path) -> AsyncIterator[Rig]:
    async with StandInWeb() as site, EgressProxy(frozenset({site.host_port})) as proxy:
        capturer = BrowserCapturer(
            browser_program,
            proxy,
            semaphore=asyncio.Semaphore(4),
            deadline_s=90,
            allow_unsandboxed=is_sandbox_missing(),
        )
        try:
            yield Rig(site=site, proxy=proxy, capturer=capturer)
        finally:
            await capturer.aclose()
