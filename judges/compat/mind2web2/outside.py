"""External services for the tools of judge scripts: keys, web, browser, decoding programs.

The service's process uses them directly. An isolated child process has no keys, so it calls ``use_services`` once at
its start to route all of them through the service.
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


class LiveBrowser(Protocol):
    """Captures live pages with a browser that starts on first use."""

    async def observe(self, url: str) -> Observation: ...

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...


class ExternalServices(Protocol):
    """External services that tools use."""

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        """Fetch a URL once. Network errors are reported in the observation."""
        ...

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        """See ``cache.backends.documents.read_document``."""
        ...

    def live_pages(self, max_pages: int) -> LiveBrowser:
        """Return a separate browser for up to ``max_pages`` concurrent captures."""
        ...

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        """Return a ``googlemaps.Client`` or an equivalent. Raises ValueError without a usable key."""
        ...

    def model(self, provider: str) -> LLMClient | None:
        """Return a client for any model of a provider; None if it is to be created with the keys of this process.

        Raises:
            judges.errors.ModelNotConfigured: a key is missing.
        """
        ...


class LocalServices:
    """External services, used directly with the keys in the environment."""

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        return await fetch(url, deadline_s=deadline_s)

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        return await read_document(data, content_type, deadline_s=deadline_s)

    def live_pages(self, max_pages: int) -> LiveBrowser:
        return LiveCapture(max_pages=max_pages)

    def maps(self, *, base_url: str, timeout_s: float) -> Any:
        # Retries after API faults at most double the time.
        return googlemaps.Client(
            key=required_key("GOOGLE_MAPS_API_KEY"), timeout=timeout_s, retry_timeout=2 * timeout_s, base_url=base_url
        )

    def model(self, provider: str) -> LLMClient | None:
        return None


_current: list[ExternalServices] = [LocalServices()]


def external_services() -> ExternalServices:
    """Return the external services of this process."""
    return _current[-1]


def use_services(other: ExternalServices) -> None:
    """Use ``other`` for all tools of this process from now on."""
    _current[:] = [other]
