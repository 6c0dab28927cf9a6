"""Interface of the DevTools protocol that captures need from a browser adapter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class PageLost(Exception):
    """The page, its browser or the connection was lost. Raised by DevTools implementations."""


class DevTools(Protocol):
    """DevTools session of one page. Raises PageLost."""

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]: ...

    def on(self, event: str, listener: Callable[[dict[str, Any]], None]) -> None: ...

    async def run(self, script: str, argument: object = None) -> Any:
        """Return the value of a JavaScript function, called in an isolated world of the main document."""
