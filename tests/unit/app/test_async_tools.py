from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from app.async_tools import Batches, cancellable_sleep


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


async def test_calls_during_a_batch_form_the_next_batch() -> None:
    seen: list[list[int]] = []
    has_begun, is_open = asyncio.Event(), asyncio.Event()

    async def double(items: Sequence[int]) -> list[int]:
        seen.append(list(items))
        has_begun.set()
        await is_open.wait()
        return [2 * item for item in items]

    batches = Batches(double)
    first = asyncio.create_task(batches.run(1))
    await has_begun.wait()
    later = [asyncio.create_task(batches.run(item)) for item in range(2, 203)]
    await asyncio.sleep(0)
    is_open.set()

    assert await asyncio.gather(first, *later) == [2 * item for item in range(1, 203)]
    assert seen == [[1], list(range(2, 102)), list(range(102, 202)), [202]]


async def test_failed_batch_fails_its_calls_and_not_the_next_ones() -> None:
    async def fail_on_zero(items: Sequence[int]) -> list[int]:
        if 0 in items:
            raise ValueError("zero")
        return list(items)

    batches = Batches(fail_on_zero)
    failed = await asyncio.gather(batches.run(0), batches.run(1), return_exceptions=True)

    assert [str(each) for each in failed] == ["zero", "zero"]
    assert await batches.run(1) == 1
