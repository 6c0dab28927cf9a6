"""Browsers are started late, renewed after so many pages, and none is left open."""

from __future__ import annotations

import asyncio

import pytest

from cache.backends.pool import BrowserPool
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


class Starting:
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


async def test_nothing_is_started_before_it_is_needed() -> None:
    start = Starting()
    pool = BrowserPool(start, pages_per_browser=5)
    assert (start.made, pool.current) == ([], None)
    await _page(pool)
    assert len(start.made) == 1


async def test_pages_at_the_same_time_share_one_browser() -> None:
    start = Starting()
    pool = BrowserPool(start, pages_per_browser=50)
    assert set(await asyncio.gather(*(_page(pool) for _ in range(20)))) == {0}


async def test_a_browser_is_renewed_after_its_pages_and_ended_when_the_last_is() -> None:
    start = Starting()
    pool = BrowserPool(start, pages_per_browser=3)
    assert [await _page(pool) for _ in range(7)] == [0, 0, 0, 1, 1, 1, 2]
    assert [browser.closed for browser in start.made] == [1, 1, 0]


async def test_a_worn_browser_stays_until_its_last_page_is_done() -> None:
    start = Starting()
    pool = BrowserPool(start, pages_per_browser=1)
    async with pool.lease() as slow:
        assert await _page(pool) == 1
        assert slow.browser.closed == 0
    assert [browser.closed for browser in start.made] == [1, 1]


async def test_a_dead_browser_is_replaced() -> None:
    start = Starting()
    pool = BrowserPool(start, pages_per_browser=50)
    await _page(pool)
    start.made[0].alive = False
    assert await _page(pool) == 1
    assert start.made[0].closed == 1


async def test_one_that_was_retired_gets_no_new_page() -> None:
    start = Starting()
    pool = BrowserPool(start, pages_per_browser=50)
    async with pool.lease() as lease:
        lease.retire()
        assert await _page(pool) == 1
    assert start.made[0].closed == 1


async def test_closing_ends_all_even_those_in_use() -> None:
    start = Starting()
    pool = BrowserPool(start, pages_per_browser=1)
    async with pool.lease(), pool.lease():
        await pool.aclose()
        assert [browser.closed for browser in start.made] == [1, 1]
    assert [browser.closed for browser in start.made] == [1, 1]
    assert pool.current is None


async def test_closing_ends_what_is_in_use_before_it_waits_for_one_that_is_starting() -> None:
    may_start = asyncio.Event()
    start = Starting()

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


async def test_a_closed_pool_starts_nothing() -> None:
    start = Starting()
    pool = BrowserPool(start, pages_per_browser=5)
    await pool.aclose()
    with pytest.raises(BrowserUnavailable):
        await _page(pool)
    assert start.made == []
