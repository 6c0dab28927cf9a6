"""Concurrency limits: one semaphore per limited resource.

Each adapter holds its semaphore only during its external call. A page capture acquires two, always in this order, so
deadlocks are impossible: first the slot of its host, then a page slot. If workers share a limit, the slot of this
process is acquired before the shared one.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Semaphores of this process. ``answers()`` creates one per task."""

    tasks: asyncio.Semaphore
    pages: asyncio.Semaphore
    llm: AbstractAsyncContextManager[Any]
    max_answers: int
    max_pages_per_host: int

    @classmethod
    def from_settings(cls, settings: Settings, *, shared_llm: AbstractAsyncContextManager[Any] | None = None) -> Limits:
        """Create the limits. ``shared_llm`` is the model request limit that all workers share, if any."""
        llm = asyncio.Semaphore(settings.max_llm)
        return cls(
            tasks=asyncio.Semaphore(settings.max_tasks),
            pages=asyncio.Semaphore(settings.max_pages),
            llm=llm if shared_llm is None else CombinedLimit(llm, shared_llm),
            max_answers=settings.max_answers,
            max_pages_per_host=settings.max_pages_per_host,
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
