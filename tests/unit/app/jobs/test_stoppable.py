from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from app.jobs.queue import run_cancellable


async def cancel_and_wait(running: asyncio.Task[None]) -> None:
    await asyncio.sleep(0)  # until it runs
    running.cancel()
    async with asyncio.timeout(240):
        await asyncio.wait({running})


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(240):
        while not holds():  # noqa: ASYNC110 - a list has no event
            await asyncio.sleep(0)


async def draining(events: list[str], *, for_s: float) -> None:
    """Wait until cancelled, then finish after ``for_s`` seconds."""
    events.append("started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        events.append("once")
        await asyncio.sleep(for_s)
        events.append("finished")
        raise


async def test_task_that_suppressed_its_cancellation_is_cancelled_again():
    async def suppress_first_cancellation() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    running = asyncio.create_task(
        run_cancellable(suppress_first_cancellation(), is_draining=lambda: False, recancel_interval_s=0.01)
    )
    await cancel_and_wait(running)
    assert running.cancelled()


async def test_draining_task_is_cancelled_once_and_awaited():
    events: list[str] = []
    running = asyncio.create_task(
        run_cancellable(draining(events, for_s=0.1), is_draining=lambda: True, recancel_interval_s=0.01)
    )
    await cancel_and_wait(running)
    assert running.cancelled()
    assert events == ["started", "once", "finished"]


async def test_second_cancellation_does_not_wait_for_draining():
    events: list[str] = []
    running = asyncio.create_task(
        run_cancellable(draining(events, for_s=3600), is_draining=lambda: True, recancel_interval_s=0.01)
    )
    await until(lambda: "started" in events)
    running.cancel()
    await until(lambda: "once" in events)
    await cancel_and_wait(running)
    assert running.cancelled()
    assert events == ["started", "once"]


async def test_own_error_of_the_task_is_raised():
    async def lost() -> None:
        raise ConnectionError("the database went away")

    with pytest.raises(ConnectionError):
        await run_cancellable(lost(), is_draining=lambda: False, recancel_interval_s=0.01)
