"""Whose turn it is to capture a page, and to knock at a host, when several processes could.

The seams only, with what a single process needs: nothing. ``app.storage`` has them over all workers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class CaptureTurns(Protocol):
    """One process at a time captures a page; a process that died loses its turn by itself."""

    def turn(self, key: str) -> AbstractAsyncContextManager[None]:
        """Wait until nobody else captures the page of ``key``. Raises IndexFailed when that cannot be known."""


class HostPace(Protocol):
    """Keeps visits to one host apart."""

    async def wait(self, host: str, gap_s: float) -> None:
        """Return when the next visit to ``host`` may begin, ``gap_s`` after the one before at the earliest."""


class OnlyProcess:
    """Implements CaptureTurns where no other process shares the index."""

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        yield


class ProcessPace:
    """Implements HostPace within one process."""

    def __init__(
        self, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._next: dict[str, float] = {}

    async def wait(self, host: str, gap_s: float) -> None:
        now = self._now()
        begin = max(now, self._next.get(host, now))
        self._next = {known: at for known, at in self._next.items() if at > now}
        self._next[host] = begin + gap_s
        if begin > now:
            await self._sleep(begin - now)
