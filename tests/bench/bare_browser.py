"""Throughput of a bare browser on the same pages, to compare this machine with the one of the targets.

On the reference machine (measurements of 2026-11-20: two cores, headless shell, new contexts, load event plus 150 ms,
one full-page screenshot) it was 332 to 360 pages a minute. The bare browser has no checks and no egress proxy, and it
does not wait for late text.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from patchright.async_api import Browser, async_playwright

QUIET_MS = 150
WIDTH_PX, HEIGHT_PX = 1280, 800
MAX_PX = 10_000
PUBLISHED = "332-360 pages/min"


class BareBrowser:
    """A browser that opens each page in a separate context, reads its text and takes a screenshot."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    @classmethod
    @asynccontextmanager
    async def start(cls, executable: Path) -> AsyncIterator[BareBrowser]:
        """Start the browser. The pages are our own, so no sandbox is needed."""
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=executable, headless=True, args=["--no-sandbox"])
            yield cls(browser)
            await browser.close()

    async def capture_all(self, urls: Sequence[str], at_once: int) -> None:
        places = asyncio.Semaphore(at_once)

        async def capture(url: str) -> None:
            async with places:
                await self.capture(url)

        await asyncio.gather(*map(capture, urls))

    async def capture(self, url: str) -> None:
        context = await self._browser.new_context(viewport={"width": WIDTH_PX, "height": HEIGHT_PX})
        try:
            page = await context.new_page()
            await page.goto(url, wait_until="load")
            await page.wait_for_timeout(QUIET_MS)
            height = await page.evaluate("() => document.documentElement.scrollHeight")
            await page.evaluate("() => [document.body.innerText, document.documentElement.outerHTML]")
            await page.set_viewport_size({"width": WIDTH_PX, "height": min(int(height), MAX_PX)})
            await page.screenshot(type="jpeg", quality=85)
        finally:
            await context.close()
