from __future__ import annotations

import asyncio

import pytest

from cache.single_flight import SingleFlight


class Work:
    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.started = 0
        self.cancelled = 0

    async def __call__(self) -> int:
        self.started += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.started


async def test_concurrent_calls_share_one_run() -> None:
    flights, work = SingleFlight[str, int](), Work()
    calls = [asyncio.create_task(flights.run("key", work)) for _ in range(50)]
    await asyncio.sleep(0)
    work.gate.set()
    assert await asyncio.gather(*calls) == [1] * 50


async def test_run_is_cancelled_when_its_last_caller_is_cancelled() -> None:
    flights, work = SingleFlight[str, int](), Work()
    first, second = (asyncio.create_task(flights.run("key", work)) for _ in range(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    assert work.cancelled == 0
    second.cancel()
    await asyncio.wait([second])
    await flights.aclose()
    assert work.cancelled == 1


async def test_closing_cancels_running_calls() -> None:
    flights, work = SingleFlight[str, int](), Work()
    calls = asyncio.create_task(flights.run("key", work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await flights.aclose()
    with pytest.raises(asyncio.CancelledError):
        await calls
    assert work.cancelled == 1
