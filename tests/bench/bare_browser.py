"""Throughput of a bare browser on the same pages, to compare this machine with the one of the targets.

On the reference machine (measurements of 2026-11-20: two cores, headless shell, new contexts, load event plus 150 ms,
one full-page screenshot) it was 332 to 360 pages a minute. The bare browser has no checks and no egress proxy, and it
does not wait for late text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from patchright.async_api import Browser, async_playwright

QUIET_MS = 150
WIDTH_PX, HEIGHT_PX = 1280, 800
MAX_PX = 10_000
PUBLISHED = "332-360 pages/min"


async def per_minute(executable: Path, urls: Sequence[str], at_once: int) -> float:
    """Open each page in a separate context, read its text and take a screenshot, ``at_once`` at a time.

    The start of the browser counts, as it does for our captures. The pages are our own, so no sandbox is needed.
    """
    places = asyncio.Semaphore(at_once)
    began = time.perf_counter()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, headless=True, args=["--no-sandbox"])

        async def one(url: str) -> None:
            async with places:
                await _capture(browser, url)

        await asyncio.gather(*map(one, urls))
        wall_s = time.perf_counter() - began
        await browser.close()
    return 60 * len(urls) / wall_s


async def _capture(browser: Browser, url: str) -> None:
    context = await browser.new_context(viewport={"width": WIDTH_PX, "height": HEIGHT_PX})
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
