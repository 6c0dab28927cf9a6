"""Minimum interval between captures of the same host, so that a site that is cited often is not overloaded."""

from __future__ import annotations

from collections.abc import Callable

from cache.capture import Capturer, Observation
from cache.capture_locks import HostPacing
from cache.urls import host_and_port


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
        found: bool | None = getattr(self._capturer, "sandboxed", None)
        return found

    async def aclose(self) -> None:
        await self._capturer.aclose()
