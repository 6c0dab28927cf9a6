"""Closing what judge scripts leave open, at the end of the event loop they ran in.

The public interfaces have no way to close a client, and scripts do not close evaluators. ``asyncio.run`` cancels the
tasks that are left at its end and waits for them: a task that waits for just that can still clean up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_waiting: set[asyncio.Task[None]] = set()
"""An event loop refers to its tasks only weakly."""


def at_end_of_loop(close: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Await ``close`` when the running loop ends, or earlier when the task that is returned is cancelled."""
    task = asyncio.get_running_loop().create_task(_wait_for_the_end(close), name="at-end-of-loop")
    _waiting.add(task)
    task.add_done_callback(_waiting.discard)
    return task


async def _wait_for_the_end(close: Callable[[], Awaitable[None]]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await close()
