"""Concurrency limits: one semaphore per limited resource.

Each adapter holds its semaphore only during its external call. Answers share the slots for page captures fairly, see
``cache.fair_limit``. If workers share a limit, the slot of this process is acquired before the shared one, so deadlocks
are impossible.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from app.settings import Settings
from cache.fair_limit import FairLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Semaphores of this process. ``answers()`` creates one per task."""

    tasks: asyncio.Semaphore
    pages: FairLimit
    llm: AbstractAsyncContextManager[Any]
    max_answers: int

    @classmethod
    def from_settings(cls, settings: Settings, *, shared_llm: AbstractAsyncContextManager[Any] | None = None) -> Limits:
        """Create the limits. ``shared_llm`` is the model request limit that all workers share, if any."""
        llm = asyncio.Semaphore(settings.max_llm)
        return cls(
            tasks=asyncio.Semaphore(settings.max_tasks),
            pages=FairLimit(settings.max_pages, per_host=settings.max_pages_per_host),
            llm=llm if shared_llm is None else CombinedLimit(llm, shared_llm),
            max_answers=settings.max_answers,
        )

    def answers(self) -> asyncio.Semaphore:
        """Create a semaphore for the answers of one task."""
        return asyncio.Semaphore(self.max_answers)


class CombinedLimit:
    """Reentrant context manager that acquires a slot of the first limit, then one of the second."""

    def __init__(self, first: AbstractAsyncContextManager[Any], second: AbstractAsyncContextManager[Any]) -> None:
        self._first = first
        self._second = second

    async def __aenter__(self) -> None:
        await self._first.__aenter__()
        try:
            await self._second.__aenter__()
        except BaseException:  # cancellation too must release the first
            await self._first.__aexit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._second.__aexit__(kind, error, trace)
        finally:
            await self._first.__aexit__(kind, error, trace)
