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
from mind2web2.llm_client.judge import AnswerScope, HarnessError, answer_scope
from mind2web2.page_source import LivePages
from mind2web2.utils.cache_filesys import image_bytes
from mind2web2.utils.page_info_retrieval import BatchBrowserManager, Capture

_CAPTURE, _CAPTURE_PAGE = BatchBrowserManager.capture, BatchBrowserManager.capture_page
_shared: ContextVar[BatchBrowserManager | None] = ContextVar("mind2web2_shared_browser", default=None)


@asynccontextmanager
async def shared_manager(max_concurrent_pages: int = 10) -> AsyncIterator[BatchBrowserManager]:
    """Share one manager between all evaluators created inside the block without one. It is stopped at the end."""
    manager = BatchBrowserManager(max_concurrent_pages=max_concurrent_pages)
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
    """Return a manager as a source of live pages. Any object with ``capture`` or ``capture_page`` is accepted."""
    if isinstance(manager, BatchBrowserManager) and not (
        _replaced(manager.capture, _CAPTURE) or _replaced(manager.capture_page, _CAPTURE_PAGE)
    ):
        return manager
    return _ForeignPages(manager, logger)


def _replaced(method: Any, own: Any) -> bool:
    """Return whether a subclass or a script has replaced a method."""
    return getattr(method, "__func__", None) is not own


class _ForeignPages:
    """Live pages from a foreign manager: one of autumn with ``capture``, or one of February with ``capture_page``."""

    def __init__(self, manager: Any, logger: logging.Logger) -> None:
        self._manager = manager
        self._logger = logger
        self._has_capture = hasattr(manager, "capture") and _replaced(manager.capture, _CAPTURE)

    async def observe(self, url: str) -> Observation:
        began = time.monotonic()
        outcome, shot, found = CaptureOutcome.OK, None, Capture()
        try:
            # In a scope of its own: this capture concerns one page. A subclass may call our methods.
            with answer_scope(AnswerScope()), foreign_object(_ManagerFailed, passing=HarnessError):
                found = await self._capture(url)
                shot = None if found.screenshot_b64 is None else image_bytes(found.screenshot_b64)
        except _ManagerFailed as error:
            outcome, found = CaptureOutcome.CRASH, Capture(error=f"the browser manager failed: {error}")
        if found.blocked:
            outcome = CaptureOutcome.BLOCKED
        elif found.error is not None:
            outcome = CaptureOutcome.CRASH
        elif shot is None and found.text is None:
            outcome = CaptureOutcome.EMPTY
        return Observation(
            url=url,
            outcome=outcome,
            detail=found.error or ("the browser manager returned nothing" if outcome is CaptureOutcome.EMPTY else ""),
            captured_at=datetime.now(UTC),
            duration_s=time.monotonic() - began,
            backend=type(self._manager).__name__,
            final_url=found.final_url,
            http_status=found.status,
            text=found.text or "",
            screenshots=() if shot is None else (shot,),
        )

    async def _capture(self, url: str) -> Capture:
        if not self._has_capture:
            image, text = await self._manager.capture_page(url, self._logger)
            return Capture(image, text)
        found = await self._manager.capture(url, self._logger)
        return Capture(found.screenshot_b64, found.text, found.error, found.blocked, found.status, found.final_url)


class _ManagerFailed(Exception):
    """Error of a foreign manager. Never leaves this module."""
