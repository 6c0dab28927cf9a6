"""Choice of an evaluator's browser manager, and an adapter for foreign browser managers."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from cache.capture import CaptureOutcome, Observation
from mind2web2.foreign_client import foreign_object
from mind2web2.page_source import LivePages
from mind2web2.screenshots import image_bytes
from mind2web2.utils.page_info_retrieval import BatchBrowserManager

_shared: ContextVar[BatchBrowserManager | None] = ContextVar("mind2web2_shared_browser", default=None)


@asynccontextmanager
async def shared_manager() -> AsyncIterator[BatchBrowserManager]:
    """Share one manager between all evaluators created inside the block without one. It is stopped at the end."""
    manager = BatchBrowserManager()
    token = _shared.set(manager)
    try:
        yield manager
    finally:
        _shared.reset(token)
        await manager.stop()


def default_manager() -> BatchBrowserManager:
    """Return the shared manager, or a new one that is not started yet."""
    return _shared.get() or BatchBrowserManager()


async def stop_manager(manager: Any) -> None:
    """Stop an evaluator's manager, unless it is the shared one."""
    if manager is not _shared.get():
        await manager.stop()


def as_live_pages(manager: Any, logger: Any) -> LivePages:
    """Return a manager as a source of live pages. Any object with ``capture_page`` is accepted."""
    return manager if isinstance(manager, BatchBrowserManager) else _ForeignPages(manager, logger)


class _ForeignPages:
    """Live pages from a foreign manager, which gives no reason for a failed capture."""

    def __init__(self, manager: Any, logger: logging.Logger) -> None:
        self._manager = manager
        self._logger = logger

    async def observe(self, url: str) -> Observation:
        began = time.monotonic()
        outcome, detail, shot, text = CaptureOutcome.OK, "", None, None
        try:
            with foreign_object(_ManagerFailed):
                image, text = await self._manager.capture_page(url, self._logger)
                shot = None if image is None else image_bytes(image)
        except _ManagerFailed as error:
            outcome, detail = CaptureOutcome.CRASH, f"the browser manager failed: {error}"
        if outcome is CaptureOutcome.OK and shot is None and text is None:
            outcome, detail = CaptureOutcome.EMPTY, "the browser manager returned nothing"
        return Observation(
            url=url,
            outcome=outcome,
            detail=detail,
            captured_at=datetime.now(UTC),
            duration_s=time.monotonic() - began,
            backend=type(self._manager).__name__,
            text=text or "",
            screenshots=() if shot is None else (shot,),
        )


class _ManagerFailed(Exception):
    """Error of a foreign manager. Never leaves this module."""
