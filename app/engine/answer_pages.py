"""Pages of one answer: the cited pages, captured before judging, and the pages that the judge requests later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from cache.capture import Capture, Evidence
from cache.errors import BrowserUnavailable, CacheError, NoEvidence
from cache.pages import PageCache

_log = structlog.get_logger(__name__)


class AnswerPages:
    """Page cache that records which captures an answer used, in the order of first use."""

    def __init__(self, pages: PageCache, *, near: datetime | None = None) -> None:
        """``near`` is the time at which the answer was given. The web archive copy closest to it is used."""
        self._pages = pages
        self._near = near
        self._seen: dict[str, Capture] = {}

    @property
    def seen(self) -> tuple[Capture, ...]:
        """One capture per page: the last one if a page was captured again."""
        return tuple(self._seen.values())

    async def capture_all(self, urls: Sequence[str], done: Callable[[int], None]) -> None:
        """Capture pages concurrently; the page cache limits the concurrency. Calls ``done`` with the number of pages
        done.

        Errors of single pages are only logged here. They are raised again when a claim needs the page.

        Raises:
            BrowserUnavailable: Nothing can be captured on this machine.
        """
        count = 0
        found: dict[str, Capture] = {}

        async def one(url: str) -> None:
            nonlocal count
            try:
                found[url] = await self._pages.get(url, near=self._near)
            except BrowserUnavailable:
                raise
            except CacheError as error:
                _log.warning("page not captured", url=url, detail=str(error))
            count += 1
            done(count)

        done(0)
        unavailable: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as captures:
                for url in urls:
                    captures.create_task(one(url))
        except* BrowserUnavailable as errors:
            unavailable = errors.exceptions[0]
        if unavailable is not None:
            raise unavailable
        for url in urls:
            if url in found:
                self._keep(found[url])

    async def evidence_for(self, url: str) -> Evidence:
        """Return the evidence of a page, as ``PageCache.evidence_for``, and record its capture."""
        try:
            evidence = await self._pages.evidence_for(url, near=self._near)
        except NoEvidence as error:
            if error.capture is not None:
                self._keep(error.capture)
            raise
        self._keep(evidence.capture)
        return evidence

    def _keep(self, capture: Capture) -> None:
        self._seen[capture.key] = capture
