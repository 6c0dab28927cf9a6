"""Pages in unusual formats: visible text is read and errors are recognised."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cache.backends.patchright import BrowserCapturer
from cache.capture import Capturer
from cache.egress.proxy import EgressProxy
from tests.fakes.sandbox import is_sandbox_missing
from tests.unusual_pages.captured import capture_unusual_pages

pytestmark = pytest.mark.browser


async def test_unusual_formats_are_read_and_every_error_is_recognised(browser_program: Path) -> None:
    def make(proxy: EgressProxy) -> Capturer:
        slots = asyncio.Semaphore(4)
        return BrowserCapturer(browser_program, proxy, semaphore=slots, allow_unsandboxed=is_sandbox_missing())

    seen = await capture_unusual_pages(make, every=2)
    assert seen.wrong == {}
    assert seen.pages >= 24
    assert seen.errors == 8
