from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from app.jobs import queue as module
from app.jobs.queue import run_cancellable


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECANCEL_INTERVAL_S", 0.01)


async def told_to_stop(running: asyncio.Task[None]) -> None:
    await asyncio.sleep(0.01)
    running.cancel()
    async with asyncio.timeout(2):
        await asyncio.wait({running})


async def draining(told: list[str], *, for_s: float) -> None:
    """Works until it is told to stop, and finishes what it has."""
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        told.append("once")
        await asyncio.sleep(for_s)
        told.append("finished")
        raise


async def test_one_that_did_not_hear_it_is_told_again():
    async def deaf_once() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    running = asyncio.create_task(run_cancellable(deaf_once(), drains=lambda: False))
    await told_to_stop(running)
    assert running.cancelled()


async def test_one_that_finishes_its_work_is_told_once_and_waited_for():
    told: list[str] = []
    running = asyncio.create_task(run_cancellable(draining(told, for_s=0.1), drains=lambda: True))
    await told_to_stop(running)
    assert running.cancelled()
    assert told == ["once", "finished"]


async def test_told_a_second_time_nothing_is_waited_for():
    told: list[str] = []
    running = asyncio.create_task(run_cancellable(draining(told, for_s=60), drains=lambda: True))
    await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.sleep(0.02)
    await told_to_stop(running)
    assert running.cancelled()
    assert told == ["once"]


async def test_what_ends_by_itself_ends_as_it_did():
    async def lost() -> None:
        raise ConnectionError("the database went away")

    with pytest.raises(ConnectionError):
        await run_cancellable(lost(), drains=lambda: False)
