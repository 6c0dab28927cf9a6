"""Pacing: minimum interval between requests to the same host, so that a site that is cited often is not overloaded.

``app.storage`` implements ``HostPacing`` for several workers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from cache.capture import Capturer, Observation
from cache.urls import host_and_port


class HostPacing(Protocol):
    """Minimum interval between requests to the same host."""

    async def wait(self, host: str, interval_s: float) -> None:
        """Wait until the next request to ``host`` may start: ``interval_s`` seconds after the previous one."""


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


class PacedCapturer:
    """Capturer with a rate limit per host, except the operator's own hosts. It closes the wrapped capturer."""

    def __init__(
        self,
        capturer: Capturer,
        pacing: HostPacing,
        *,
        interval_s: float,
        is_exempt: Callable[[tuple[str, int]], bool] = lambda host_port: False,
    ) -> None:
        """``interval_s``: seconds between the starts of two captures of a host. ``is_exempt`` gets (host, port)."""
        self._capturer = capturer
        self._pacing = pacing
        self._interval_s = interval_s
        self._is_exempt = is_exempt

    async def capture(self, url: str) -> Observation:
        try:
            host_port = host_and_port(url)
        except ValueError:
            return await self._capturer.capture(url)
        if self._interval_s > 0 and not self._is_exempt(host_port):
            await self._pacing.wait(host_port[0], self._interval_s)
        return await self._capturer.capture(url)

    @property
    def sandboxed(self) -> bool | None:
        """Whether the wrapped capturer runs in a sandbox; None if unknown."""
        value: bool | None = getattr(self._capturer, "sandboxed", None)
        return value

    async def aclose(self) -> None:
        await self._capturer.aclose()
