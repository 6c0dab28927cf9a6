"""Reliable cancellation of procrastinate's worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

RECANCEL_INTERVAL_S = 1.0


async def run_cancellable(working: Coroutine[Any, Any, None], *, drains: Callable[[], bool]) -> None:
    """Run procrastinate's worker so that cancelling this call always stops it.

    In Python 3.11 ``asyncio.wait_for`` drops a cancellation that arrives together with its result. The worker can lose
    a cancellation in this way while it gets a connection during startup. It is therefore cancelled again every
    ``RECANCEL_INTERVAL_S`` seconds, unless ``drains`` returns True: then it has started and waits for its running
    entries. A second cancellation would interrupt them.
    """
    running = asyncio.create_task(working, name="queue worker")
    try:
        await asyncio.wait({running})
    except asyncio.CancelledError:
        has_work = drains()
        running.cancel()
        while not running.done():
            try:
                await asyncio.wait({running}, timeout=None if has_work else RECANCEL_INTERVAL_S)
            except asyncio.CancelledError:
                running.cancel()  # second cancellation of this call: do not wait for running entries
            else:
                if not has_work:
                    running.cancel()
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error from None
        raise
    await running
