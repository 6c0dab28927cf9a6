"""How much happens at once: one semaphore per scarce thing, made in one place.

Each adapter is handed its own and takes it around its single outside call. Only a page waits for a second
one, its host's place first and then a place of all pages, always in this order: nothing can lock up. Where workers
share a limit, a place of this process comes first and then one of all.
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
    """The semaphores of this process. ``answers`` counts answers of one task, so each task gets its own."""

    tasks: asyncio.Semaphore
    pages: asyncio.Semaphore
    llm: AbstractAsyncContextManager[Any]
    max_answers: int
    max_pages_per_host: int

    @classmethod
    def from_settings(cls, settings: Settings, *, llm_of_all: AbstractAsyncContextManager[Any] | None = None) -> Limits:
        """``llm_of_all``: the places at the models that all workers share, where they do."""
        llm = asyncio.Semaphore(settings.max_llm)
        return cls(
            tasks=asyncio.Semaphore(settings.max_tasks),
            pages=asyncio.Semaphore(settings.max_pages),
            llm=llm if llm_of_all is None else BothPlaces(llm, llm_of_all),
            max_answers=settings.max_answers,
            max_pages_per_host=settings.max_pages_per_host,
        )

    def answers(self) -> asyncio.Semaphore:
        """A fresh semaphore for the answers of one task."""
        return asyncio.Semaphore(self.max_answers)


class BothPlaces:
    """``async with`` takes a place of the first and then one of the second; may be entered as often as one likes."""

    def __init__(self, first: AbstractAsyncContextManager[Any], second: AbstractAsyncContextManager[Any]) -> None:
        self._first = first
        self._second = second

    async def __aenter__(self) -> None:
        await self._first.__aenter__()
        try:
            await self._second.__aenter__()
        except BaseException:
            await self._first.__aexit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._second.__aexit__(kind, error, trace)
        finally:
            await self._first.__aexit__(kind, error, trace)
