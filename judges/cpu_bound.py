"""CPU-bound work on texts or leaves: run at once if they are short or few, otherwise in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

LARGE_TEXT_CHARS: Final = 50_000
"""Below this size, the work takes 1-2 ms, which is about the cost of a thread switch."""

MANY_LEAVES: Final = 200
"""Below this number of leaves, no step of the work on a settled rubric takes more than 10 ms."""


async def run_cpu_bound(work: Callable[[], T], *texts: str, limit_chars: int = LARGE_TEXT_CHARS) -> T:
    """Return the result of ``work``, run in a thread if ``texts`` have at least ``limit_chars`` characters."""
    return work() if sum(map(len, texts)) < limit_chars else await asyncio.to_thread(work)


async def run_on_leaves(work: Callable[[], T], leaves: int) -> T:
    """Return the result of ``work`` on this number of leaves, run in a thread if there are ``MANY_LEAVES``."""
    return work() if leaves < MANY_LEAVES else await asyncio.to_thread(work)
