"""Single flight: concurrent calls with the same key share one execution.

The LRU cache is bounded by the total size of its values in bytes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
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


class LRUCache(Generic[K, V]):
    """LRU cache with a size limit, for one event loop.

    ``keeps_newest``: keep the most recently added value even if it exceeds the limit.
    """

    def __init__(self, max_bytes: int, *, keeps_newest: bool = False) -> None:
        self._max_bytes = max_bytes
        self._keeps_newest = keeps_newest
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        value = self._entries.get(key)
        if value is None:
            return None
        self._entries.move_to_end(key)
        return value[0]

    def clear(self) -> None:
        """Evict all values."""
        self._entries.clear()
        self._bytes = 0

    def put(self, key: K, value: V, size: int) -> None:
        """Add a value of ``size`` bytes. Evict the least recently used values if necessary."""
        if size > self._max_bytes and not self._keeps_newest:
            return
        _, before = self._entries.pop(key, (None, 0))
        self._entries[key] = value, size
        self._bytes += size - before
        while self._bytes > self._max_bytes and len(self._entries) > self._keeps_newest:
            _, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed
