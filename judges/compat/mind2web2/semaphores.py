"""The limits a judge script's caller hands over: one semaphore for pages and one for model calls, or one for both."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from types import TracebackType
from typing import Any, Literal

__all__ = ["DualSemaphore", "slot"]


class DualSemaphore:
    """``webpage`` is held during each capture, ``llm`` during each model call. ``async with`` takes ``webpage``."""

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
    """What to hold during one outside call: the semaphore's own one of this kind, else itself, else nothing."""
    chosen = getattr(semaphore, kind, None)
    if chosen is None:
        chosen = semaphore
    held: AbstractAsyncContextManager[Any] = nullcontext() if chosen is None else chosen
    return held
