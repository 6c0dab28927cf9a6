"""Capture locks per page and pacing of requests per host: interfaces and single-process implementations.

``app.storage`` implements both for several workers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class CaptureLocks(Protocol):
    """Lock per page, so that only one process captures it. The lock of a process that was killed expires."""

    def lock(self, key: str) -> AbstractAsyncContextManager[None]:
        """Acquire the lock for ``key``. Raises IndexFailed if the lock state is unavailable."""


class HostPacing(Protocol):
    """Minimum interval between requests to the same host."""

    async def wait(self, host: str, interval_s: float) -> None:
        """Wait until the next request to ``host`` may start: ``interval_s`` seconds after the previous one."""


class NoCaptureLocks:
    """CaptureLocks without locking, for an index that no other process shares."""

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        yield


class ProcessHostPacing:
    """HostPacing for a single process."""

    def __init__(
        self, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._next: dict[str, float] = {}

    async def wait(self, host: str, interval_s: float) -> None:
        now = self._now()
        begin = max(now, self._next.get(host, now))
        self._next = {known: at for known, at in self._next.items() if at > now}
        self._next[host] = begin + interval_s
        if begin > now:
            await self._sleep(begin - now)
