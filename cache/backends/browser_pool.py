"""Browser pool: one current browser, replaced after a number of pages or when it stops responding."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from cache.errors import BrowserUnavailable


class PooledBrowser(Protocol):
    """Interface of a browser in the pool."""

    def is_alive(self) -> bool: ...

    def kill(self) -> None:
        """Kill the browser, so that pending commands fail. ``close`` must still be called."""

    async def close(self) -> None:
        """End the browser and all its processes, in any state."""


B = TypeVar("B", bound=PooledBrowser)


@dataclass(eq=False)
class BrowserLease(Generic[B]):
    """A browser in use. ``opened_pages`` counts all leases, ``active_pages`` the unreturned ones."""

    browser: B
    opened_pages: int = 0
    active_pages: int = 0
    retired: bool = False

    def retire(self) -> None:
        """Open no new pages in this browser. It is closed after its last page."""
        self.retired = True

    @property
    def is_unusable(self) -> bool:
        return self.retired or not self.browser.is_alive()


class BrowserPool(Generic[B]):
    """Starts browsers with ``start`` on demand. ``aclose`` closes all of them."""

    def __init__(self, start: Callable[[], Awaitable[B]], *, pages_per_browser: int) -> None:
        self._start = start
        self._pages_per_browser = pages_per_browser
        self._current: BrowserLease[B] | None = None
        self._leases: set[BrowserLease[B]] = set()
        self._lock = asyncio.Lock()
        self._closed = False

    @property
    def current(self) -> B | None:
        return None if self._current is None else self._current.browser

    async def ensure_started(self) -> B:
        """Return the browser for the next page. Start it if necessary. Raises the errors of ``start``."""
        async with self._lock:
            return (await self._usable_lease()).browser

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[BrowserLease[B]]:
        """Lease a browser for one page. Raises the errors of ``start``."""
        async with self._lock:
            lease = await self._usable_lease()
            lease.opened_pages += 1
            lease.active_pages += 1
            if lease.opened_pages >= self._pages_per_browser:
                lease.retire()
        try:
            yield lease
        finally:
            lease.active_pages -= 1
            if lease.is_unusable:
                async with self._lock:
                    await self._close_if_unused(lease)

    async def aclose(self) -> None:
        """Kill all browsers, also those in use. Later leases fail."""
        self._closed = True
        for lease in self._leases:
            lease.browser.kill()
        async with self._lock:
            for lease in list(self._leases):
                lease.active_pages = 0
                await self._close_if_unused(lease)

    async def _usable_lease(self) -> BrowserLease[B]:
        if self._closed:
            raise BrowserUnavailable("the browser pool is closed")
        current = self._current
        if current is None or current.is_unusable:
            if current is not None:
                await self._close_if_unused(current)
            current = self._current = BrowserLease(await self._start())
            self._leases.add(current)
        return current

    async def _close_if_unused(self, lease: BrowserLease[B]) -> None:
        """Close a browser that has no open pages."""
        if self._current is lease:
            self._current = None
        if lease.active_pages == 0 and lease in self._leases:
            self._leases.discard(lease)
            await lease.browser.close()
