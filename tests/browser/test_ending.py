"""Captures whose browser driver receives a signal or is killed, and captures during shutdown."""

from __future__ import annotations

import asyncio
import signal

import psutil
import pytest

from cache.backends.patchright import BrowserCapturer
from cache.capture import CaptureOutcome
from cache.errors import BrowserUnavailable
from tests.browser.conftest import Rig
from tests.fakes.processes import command_line, descendants, is_running
from tests.fakes.sandbox import is_sandbox_missing
from tests.standin.web import Reply, Visit

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PROSE = "<title>A</title><p>Words that can be read, on a page that is captured while something else happens.</p>"


def _drivers() -> list[psutil.Process]:
    return [process for process in descendants() if "run-driver" in command_line(process)]


def _capturer(rig: Rig) -> BrowserCapturer:
    return BrowserCapturer(
        rig.capturer.executable,
        rig.proxy,
        semaphore=asyncio.Semaphore(2),
        deadline_s=240,
        allow_unsandboxed=is_sandbox_missing(),
    )


async def _outcome_after_signal(rig: Rig, number: signal.Signals) -> CaptureOutcome:
    """Return the outcome of a capture whose driver receives this signal during the page request."""
    others = set(_drivers())
    capturer = _capturer(rig)
    await capturer.start()
    [driver] = set(_drivers()) - others

    async def page(visit: Visit) -> Reply:
        if driver.is_running():
            driver.send_signal(number)
        return Reply.html(PROSE, delay_s=0.3)

    rig.site.pages["/signalled"] = page
    try:
        return (await capturer.capture(rig.site.url("/signalled"))).outcome
    finally:
        await capturer.aclose()


async def test_capture_continues_with_a_new_driver_after_a_kill(rig: Rig) -> None:
    assert await _outcome_after_signal(rig, signal.SIGKILL) is CaptureOutcome.OK


async def test_closing_ends_a_capture_that_waits_for_its_server(rig: Rig) -> None:
    asked = asyncio.Event()

    async def never(visit: Visit) -> Reply:
        asked.set()
        return Reply(hang=True)

    rig.site.pages["/never"] = never
    others = set(_drivers())
    capturer = _capturer(rig)
    capturing = asyncio.create_task(capturer.capture(rig.site.url("/never")))
    await asked.wait()
    drivers = set(_drivers()) - others
    async with asyncio.timeout(120):  # before the deadline of the capture
        await capturer.aclose()
        await asyncio.wait({capturing})
    ended = capturing.exception()
    assert isinstance(ended, BrowserUnavailable) if ended else capturing.result().outcome is CaptureOutcome.CRASH
    assert drivers
    assert not any(map(is_running, drivers))
