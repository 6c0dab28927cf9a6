from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from app.async_tools import cancellable_sleep


async def test_a_round_that_swallowed_being_cancelled_is_the_last():
    begun, rounds = asyncio.Event(), 0

    async def going_on() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            begun.set()
            with suppress(asyncio.CancelledError):  # as asyncio.wait_for of Python 3.11 does now and then
                await asyncio.sleep(60)
            await cancellable_sleep(0.0)

    task = asyncio.create_task(going_on())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 120)
    assert rounds == 1


async def test_otherwise_the_next_round_follows_after_the_pause():
    began = asyncio.get_running_loop().time()
    await cancellable_sleep(0.01)
    assert asyncio.get_running_loop().time() - began >= 0.009
