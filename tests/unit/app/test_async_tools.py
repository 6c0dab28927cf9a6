from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from app.async_tools import cancellable_sleep


async def test_loop_that_suppressed_its_cancellation_stops_at_the_next_sleep():
    begun, rounds = asyncio.Event(), 0

    async def loop_forever() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            begun.set()
            with suppress(asyncio.CancelledError):  # as asyncio.wait_for in Python 3.11 sometimes does
                await asyncio.sleep(60)
            await cancellable_sleep(0.0)

    task = asyncio.create_task(loop_forever())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 240)
    assert rounds == 1


async def test_sleep_returns_after_its_delay():
    began = asyncio.get_running_loop().time()
    await cancellable_sleep(0.01)
    assert asyncio.get_running_loop().time() - began >= 0.009
