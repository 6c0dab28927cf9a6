"""Servers in an event loop of a separate thread, for tests that block or run their own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from threading import Thread
from typing import Any

_TIMEOUT_S = 240


@contextmanager
def entered_in_thread(*managers: AbstractAsyncContextManager[Any]) -> Iterator[None]:
    """Enter the context managers in an event loop of a separate thread, which runs during the block."""
    loop, stack = asyncio.new_event_loop(), AsyncExitStack()
    thread = Thread(target=loop.run_forever, name="event loop of a test")
    thread.start()

    def run(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(_TIMEOUT_S)

    async def enter() -> None:
        for manager in managers:
            await stack.enter_async_context(manager)

    try:
        run(enter())
        yield
    finally:
        run(stack.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
