"""One run for everybody who asks at the same time."""

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


async def test_those_who_ask_together_share_one_run() -> None:
    flights, work = SingleFlight[str, int](), Work()
    asking = [asyncio.create_task(flights.run("key", work)) for _ in range(50)]
    await asyncio.sleep(0)
    work.gate.set()
    assert await asyncio.gather(*asking) == [1] * 50


async def test_different_keys_run_apart_and_a_later_asker_runs_anew() -> None:
    flights, work = SingleFlight[str, int](), Work()
    work.gate.set()
    assert await asyncio.gather(flights.run("a", work), flights.run("b", work)) == [1, 2]
    assert await flights.run("a", work) == 3


async def test_an_error_reaches_everybody_and_is_not_kept() -> None:
    flights = SingleFlight[str, int]()

    async def fail() -> int:
        raise LookupError("no")

    results = await asyncio.gather(*(flights.run("key", fail) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [LookupError] * 3
    work = Work()
    work.gate.set()
    assert await flights.run("key", work) == 1


async def test_only_the_last_to_leave_cancels_the_run() -> None:
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


async def test_closing_ends_what_runs() -> None:
    flights, work = SingleFlight[str, int](), Work()
    asking = asyncio.create_task(flights.run("key", work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await flights.aclose()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert work.cancelled == 1
