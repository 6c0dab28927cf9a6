"""Concurrency limits that the caller of a task script passes: separate or common semaphores for pages and models."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType
from typing import Any, Literal

__all__ = ["DualSemaphore", "slot"]


class DualSemaphore:
    """Pair of semaphores: ``webpage`` for captures, ``llm`` for model calls. ``async with`` acquires ``webpage``."""

    def __init__(self, webpage_semaphore: Any, llm_semaphore: Any) -> None:
        self.webpage = webpage_semaphore
        self.llm = llm_semaphore

    async def __aenter__(self) -> DualSemaphore:
        await self.webpage.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.webpage.__aexit__(kind, error, trace)


def slot(semaphore: Any, kind: Literal["webpage", "llm"]) -> AbstractAsyncContextManager[Any]:
    """Return the context manager to hold during a call: the semaphore of this kind, the common one, or a no-op."""
    chosen = getattr(semaphore, kind, None)
    if chosen is None:
        chosen = semaphore
    limiter: AbstractAsyncContextManager[Any] = nullcontext() if chosen is None else chosen
    return limiter
