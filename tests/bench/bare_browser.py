"""How many of the same pages a bare browser does: tells how fast this machine is beside the one of the targets.

There (shared measurements of 2026-11-20: two cores, the headless shell, fresh contexts, loaded and 150 ms of quiet, one
picture of the whole page) it was 332 to 360 a minute. It checks nothing, guards nothing and waits for nothing late.
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
    """Open each page in a context of its own, read its text and take its picture, ``at_once`` at a time.

    The browser's start counts, as it does for ours. The pages are our own, so no sandbox is needed.
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
