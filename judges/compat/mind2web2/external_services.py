"""Interface of the external services that task scripts' tools use: keys, web, browser, decoding programs.

An isolated child process has no keys, so it calls ``use_services`` once at its start to route all of them through the
service. Other processes use them directly (``local_services``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from cache.capture import Observation
from judges.llm.client import LLMClient
from mind2web2.live_browser import DEADLINE_S, LiveBrowser

if TYPE_CHECKING:
    from cache.backends.documents import Document


class ExternalServices(Protocol):
    """External services that tools use."""

    async def fetch(self, url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
        """Fetch a URL once. Network errors are reported in the observation."""
        ...

    async def read_document(self, data: bytes, content_type: str, *, deadline_s: float) -> Document:
        """See ``cache.backends.documents.read_document``."""
        ...

    def live_pages(self, max_pages: int, *, deadline_s: float = DEADLINE_S) -> LiveBrowser:
        """Return a separate browser for up to ``max_pages`` concurrent captures of up to ``deadline_s`` seconds."""
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


_current: list[ExternalServices] = []
_of_run: ContextVar[ExternalServices | None] = ContextVar("services of a run", default=None)


def external_services() -> ExternalServices:
    """Return the external services of the current run, or else of this process."""
    of_run = _of_run.get()
    if of_run is not None:
        return of_run
    if not _current:
        # Imported here because a child process never uses the browser and the decoders itself.
        from mind2web2.local_services import LocalServices

        _current.append(LocalServices())
    return _current[-1]


@contextmanager
def services_of_run(other: ExternalServices) -> Iterator[None]:
    """Use ``other`` for the tools of the tasks that start in this block."""
    token = _of_run.set(other)
    try:
        yield
    finally:
        _of_run.reset(token)


def use_services(other: ExternalServices) -> None:
    """Use ``other`` for all tools of this process from now on."""
    _current[:] = [other]
