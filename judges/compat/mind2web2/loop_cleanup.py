"""Cleanup at the end of an event loop, for resources that task scripts leave open.

The public interfaces have no way to close a client, and scripts do not close evaluators. ``asyncio.run`` cancels
pending tasks at its end and waits for them, so a waiting task can clean up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_waiting: set[asyncio.Task[None]] = set()
"""Strong references, because an event loop references its tasks only weakly."""


def close_with_loop(close: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    """Await ``close`` when the running loop ends, or when the returned task is cancelled."""
    task = asyncio.get_running_loop().create_task(_wait_for_the_end(close), name="at-end-of-loop")
    _waiting.add(task)
    task.add_done_callback(_waiting.discard)
    return task


async def _wait_for_the_end(close: Callable[[], Awaitable[None]]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await close()
