"""How much happens at once: one semaphore per scarce thing, made in one place.

Each adapter is handed its own and takes it around its single outside call. Only a page waits for a second
one, its host's place first and then a place of all pages, always in this order: nothing can lock up.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The semaphores of this process. ``answers`` counts answers of one task, so each task gets its own."""

    tasks: asyncio.Semaphore
    pages: asyncio.Semaphore
    llm: asyncio.Semaphore
    max_answers: int
    max_pages_per_host: int

    @classmethod
    def from_settings(cls, settings: Settings) -> Limits:
        return cls(
            tasks=asyncio.Semaphore(settings.max_tasks),
            pages=asyncio.Semaphore(settings.max_pages),
            llm=asyncio.Semaphore(settings.max_llm),
            max_answers=settings.max_answers,
            max_pages_per_host=settings.max_pages_per_host,
        )

    def answers(self) -> asyncio.Semaphore:
        """A fresh semaphore for the answers of one task."""
        return asyncio.Semaphore(self.max_answers)
