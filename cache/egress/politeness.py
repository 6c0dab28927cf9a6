"""Visits to a host are kept apart, so that judging an answer that cites one site twenty times does not storm it."""

from __future__ import annotations

from collections.abc import Callable

from cache.capture import Capturer, Observation
from cache.capture_locks import HostPace
from cache.urls import host_and_port


class PoliteCapturer:
    """Implements Capturer over another, which it closes. Hosts that are the operator's own are not waited for."""

    def __init__(
        self,
        capturer: Capturer,
        pace: HostPace,
        *,
        gap_s: float,
        is_own: Callable[[tuple[str, int]], bool] = lambda place: False,
    ) -> None:
        """``gap_s``: seconds between the beginnings of two visits. ``is_own`` is asked with (host, port)."""
        self._capturer = capturer
        self._pace = pace
        self._gap_s = gap_s
        self._is_own = is_own

    async def capture(self, url: str) -> Observation:
        try:
            place = host_and_port(url)
        except ValueError:
            return await self._capturer.capture(url)
        if self._gap_s > 0 and not self._is_own(place):
            await self._pace.wait(place[0], self._gap_s)
        return await self._capturer.capture(url)

    @property
    def sandboxed(self) -> bool | None:
        """Whether what captures does so in a sandbox; None where nobody knows."""
        found: bool | None = getattr(self._capturer, "sandboxed", None)
        return found

    async def aclose(self) -> None:
        await self._capturer.aclose()
