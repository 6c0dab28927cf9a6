"""The pause between two rounds of what goes on until it is cancelled."""

from __future__ import annotations

import asyncio


async def until_next_round(seconds: float) -> None:
    """Sleep, unless this task was cancelled already and the round swallowed it.

    What waits for a connection of a pool does that when both come in the same moment: ``asyncio.wait_for`` of Python
    3.11 then returns what it waited for (https://github.com/python/cpython/issues/86296). A loop would go on for ever.

    Raises:
        asyncio.CancelledError: the task is, or was, cancelled.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
    await asyncio.sleep(seconds)
