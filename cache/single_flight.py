"""Single flight: concurrent calls with the same key share one execution."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Runs one task per key and shares its result.

    Cancelling one caller does not affect the others. If all callers are cancelled, the task is cancelled.
    An exception of the task is raised in every caller.
    """

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[V]] = {}
        self._waiting: dict[asyncio.Task[V], int] = {}
        self._tasks: set[asyncio.Task[V]] = set()

    async def run(self, key: K, work: Callable[[], Awaitable[V]]) -> V:
        """Return the result of ``work``, or of the running task with the same key."""
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(_run_work(work), name=f"single-flight {key}")
            self._running[key] = task
            self._waiting[task] = 0
            self._tasks.add(task)
            task.add_done_callback(self._on_done)
        self._waiting[task] += 1
        try:
            return await asyncio.shield(task)
        finally:
            self._release(key, task)

    async def aclose(self) -> None:
        """Cancel all running tasks and wait until they have ended."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _release(self, key: K, task: asyncio.Task[V]) -> None:
        self._waiting[task] -= 1
        if self._waiting[task] > 0 and not task.done():
            return
        if self._running.get(key) is task:
            del self._running[key]
        if self._waiting[task] == 0:
            del self._waiting[task]
            task.cancel()

    def _on_done(self, task: asyncio.Task[V]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it if no caller is left


async def _run_work(work: Callable[[], Awaitable[V]]) -> V:
    return await work()
