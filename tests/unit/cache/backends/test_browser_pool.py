"""Pool of browsers: late start, renewal after a number of pages, shutdown."""

from __future__ import annotations

import asyncio

from cache.backends.browser_process import BrowserPool


class FakeBrowser:
    def __init__(self, number: int) -> None:
        self.number = number
        self.alive = True
        self.closed = 0

    def is_alive(self) -> bool:
        return self.alive

    def kill(self) -> None:
        self.alive = False

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.alive = False
        self.closed += 1


class BrowserStarter:
    def __init__(self) -> None:
        self.made: list[FakeBrowser] = []

    async def __call__(self) -> FakeBrowser:
        await asyncio.sleep(0)
        self.made.append(FakeBrowser(len(self.made)))
        return self.made[-1]


async def _page(pool: BrowserPool[FakeBrowser]) -> int:
    async with pool.lease() as lease:
        await asyncio.sleep(0)
        return lease.browser.number


async def test_browser_is_replaced_after_its_pages_and_closed_after_the_last_one() -> None:
    start = BrowserStarter()
    pool = BrowserPool(start, pages_per_browser=3)
    assert [await _page(pool) for _ in range(7)] == [0, 0, 0, 1, 1, 1, 2]
    assert [browser.closed for browser in start.made] == [1, 1, 0]


async def test_crashed_browser_is_replaced() -> None:
    start = BrowserStarter()
    pool = BrowserPool(start, pages_per_browser=50)
    await _page(pool)
    start.made[0].alive = False
    assert await _page(pool) == 1
    assert start.made[0].closed == 1
