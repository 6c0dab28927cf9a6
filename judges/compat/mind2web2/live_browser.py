"""Interface of a browser that captures live pages for the tools of a script."""

from __future__ import annotations

from typing import Protocol

from cache.capture import Observation

DEADLINE_S = 60.0


class LiveBrowser(Protocol):
    """Captures live pages with a browser that starts on first use."""

    async def observe(self, url: str, *, once: bool = False) -> Observation:
        """Capture a URL now. ``once``: visit it only once, even if that fails."""
        ...

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...
