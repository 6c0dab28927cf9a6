"""The part of the DevTools protocol that capturing speaks, as a seam: what a browser adapter must offer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class PageLost(Exception):
    """The page, its browser or the connection to it went away. Raised by DevTools implementations."""


class DevTools(Protocol):
    """One session with one page. Raises PageLost."""

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]: ...

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> None: ...

    async def run(self, script: str, argument: object = None) -> Any:
        """The value of a JavaScript function called in a world of its own in the main document."""
