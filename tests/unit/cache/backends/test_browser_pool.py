"""Pool of browsers: late start, renewal after a number of pages, shutdown."""

from __future__ import annotations

import asyncio

import pytest

from cache.backends.browser_process import BrowserPool
from cache.errors import BrowserUnavailable


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


async def test_replaced_browser_stays_open_until_its_last_page_is_done() -> None:
    start = BrowserStarter()
    pool = BrowserPool(start, pages_per_browser=1)
    async with pool.lease() as slow:
        assert await _page(pool) == 1
        assert slow.browser.closed == 0
    assert [browser.closed for browser in start.made] == [1, 1]


async def test_crashed_browser_is_replaced() -> None:
    start = BrowserStarter()
    pool = BrowserPool(start, pages_per_browser=50)
    await _page(pool)
    start.made[0].alive = False
    assert await _page(pool) == 1
    assert start.made[0].closed == 1


async def test_closing_kills_browsers_in_use_before_waiting_for_one_that_is_starting() -> None:
    may_start = asyncio.Event()
    start = BrowserStarter()

    async def second_waits() -> FakeBrowser:
        if start.made:
            await may_start.wait()
        return await start()

    pool = BrowserPool(second_waits, pages_per_browser=1)
    async with pool.lease() as lease:
        starting = asyncio.create_task(_page(pool))
        await asyncio.sleep(0)
        closing = asyncio.create_task(pool.aclose())
        await asyncio.sleep(0)
        assert not lease.browser.alive
        assert not closing.done()
        starting.cancel()
        await closing
    assert [browser.closed for browser in start.made] == [1]


async def test_closed_pool_starts_no_browser() -> None:
    start = BrowserStarter()
    pool = BrowserPool(start, pages_per_browser=5)
    await pool.aclose()
    with pytest.raises(BrowserUnavailable):
        await _page(pool)
    assert start.made == []
