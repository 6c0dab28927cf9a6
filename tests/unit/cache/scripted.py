"""Scripted capturer that counts its captures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from cache.capture import CaptureOutcome, Observation

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Clock:
    """Clock that only advances when the test moves it."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class ScriptedCapturer:
    """Capture backend whose outcome is ``outcome(url, number of earlier captures)``."""

    def __init__(
        self,
        clock: Clock,
        outcome: Callable[[str, int], CaptureOutcome] = lambda url, nth: CaptureOutcome.OK,
        *,
        gate: asyncio.Event | None = None,
        redirects: Mapping[str, str] | None = None,
    ) -> None:
        """Create the capturer. ``redirects`` maps a URL to the URL that it redirects to."""
        self._redirects = redirects or {}
        self._clock = clock
        self._outcome = outcome
        self._gate = gate
        self.captured_urls: list[str] = []
        self.cancelled = 0
        self.closed = False

    async def capture(self, url: str) -> Observation:
        nth = len(self.captured_urls)
        self.captured_urls.append(url)
        if self._gate is not None:
            try:
                await self._gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        outcome = self._outcome(url, nth)
        return Observation(
            url=url,
            outcome=outcome,
            captured_at=self._clock(),
            duration_s=0.5,
            backend="scripted",
            final_url=self._redirects.get(url, url),
            http_status=200,
            title="A page",
            text=f"text of {url}, capture {nth}",
            hidden_text="not shown",
            screenshots=(b"top", b"bottom"),
            links=(("Home", "https://a.com/"),),
            html=b"<p>text",
            chain=(url,),
            headers={"content-type": "text/html"},
            versions={"scripted": "1"},
            gone=outcome is CaptureOutcome.DNS_ERROR,
        )

    async def aclose(self) -> None:
        self.closed = True
