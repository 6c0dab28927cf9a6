"""What the tools of judge scripts need of the world: keys, the web, a browser, other programs.

In a process that has all that, they use it. In one that was made to run a script and has no key, every such need is
put to the service; ``instead`` says so once, when the process begins.
"""

from __future__ import annotations

from typing import Any, Protocol

import googlemaps  # type: ignore[import-untyped]

from cache.backends.documents import Document, read_document
from cache.capture import Observation
from judges.llm.client import LLMClient
from mind2web2.environment import required_key
from mind2web2.fetching import DEADLINE_S, fetch
from mind2web2.live_capture import LiveCapture


class Live(Protocol):
    """Looks at live pages with a browser that starts at first use."""

    async def observe(self, url: str) -> Observation: ...

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...


class Outside(Protocol):
    """The world as the tools see it."""

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        """What one GET brings; never raises for what the web does."""
        ...

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        """As ``cache.backends.documents.read_document``."""
        ...

    def live_pages(self, max_pages: int) -> Live:
        """A browser of one's own, for up to ``max_pages`` at once."""
        ...

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        """A ``googlemaps.Client`` or what does the same. Raises ValueError without a usable key."""
        ...

    def model(self, provider: str) -> LLMClient | None:
        """A client for any model of a provider; None where it is to be made by the keys of this process.

        Raises:
            judges.errors.ModelNotConfigured: a key is missing.
        """
        ...


class Here:
    """The world itself, by the keys in the environment."""

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        return await fetch(url, deadline_s=deadline_s)

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        return await read_document(data, content_type, deadline_s=deadline_s)

    def live_pages(self, max_pages: int) -> Live:
        return LiveCapture(max_pages=max_pages)

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        # At most twice as long with retries after faults of the API.
        return googlemaps.Client(
            key=required_key("GOOGLE_MAPS_API_KEY"), timeout=timeout_s, retry_timeout=2 * timeout_s, base_url=base_url
        )

    def model(self, provider: str) -> LLMClient | None:
        return None


_places: list[Outside] = [Here()]


def outside() -> Outside:
    """The world, or what stands for it."""
    return _places[-1]


def instead(other: Outside) -> None:
    """From now on, in this process, the tools turn to ``other``."""
    _places[:] = [other]
