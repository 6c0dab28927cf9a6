"""A foreign worker that is told to stop by cancelling it, and may not hear it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

UNHEARD_S = 1.0


async def stoppable(working: Coroutine[Any, Any, None], *, drains: Callable[[], bool]) -> None:
    """Run the engine's worker so that it stops when it is told to.

    Told while it starts, as it gets a connection, it may not hear it: ``asyncio.wait_for`` of Python 3.11 drops a
    cancellation that comes together with what was waited for. So it is told again, unless entries are being worked
    on: then it has started, has heard it, and gives them their time, which a second word would cut short.
    """
    running = asyncio.create_task(working, name="queue worker")
    try:
        await asyncio.wait({running})
    except asyncio.CancelledError:
        has_work = drains()
        running.cancel()
        while not running.done():
            try:
                await asyncio.wait({running}, timeout=None if has_work else UNHEARD_S)
            except asyncio.CancelledError:
                running.cancel()  # we were told a second time: nothing is waited for any more
            else:
                if not has_work:
                    running.cancel()
        if not running.cancelled() and (error := running.exception()) is not None:
            raise error from None
        raise
    await running
