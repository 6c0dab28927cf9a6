"""CPU-bound work on texts or leaves: run at once if they are short or few, otherwise in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from answers.citations import CACHED_CHARS, unique_urls

T = TypeVar("T")

LARGE_TEXT_CHARS: Final = 50_000
"""Below this size, the work takes 1-2 ms, which is about the cost of a thread switch."""

_SEARCHES: Final = ThreadPoolExecutor(1, thread_name_prefix="search")
"""One thread: several would not be faster, but the event loop would wait for each of them."""

MANY_LEAVES: Final = 200
"""Below this number of leaves, no step of the work on a settled rubric takes more than 10 ms."""


async def run_cpu_bound(work: Callable[[], T], *texts: str, limit_chars: int = LARGE_TEXT_CHARS) -> T:
    """Return the result of ``work``, run in a thread if ``texts`` have at least ``limit_chars`` characters."""
    return work() if sum(map(len, texts)) < limit_chars else await asyncio.to_thread(work)


async def cited_urls(text: str) -> tuple[str, ...]:
    """Return the URLs of an answer as ``unique_urls`` does, and search a long one in a thread."""
    if len(text) < CACHED_CHARS:
        return unique_urls(text)
    return await asyncio.get_running_loop().run_in_executor(_SEARCHES, unique_urls, text)


async def run_on_leaves(work: Callable[[], T], leaves: int) -> T:
    """Return the result of ``work`` on this number of leaves, run in a thread if there are ``MANY_LEAVES``."""
    return work() if leaves < MANY_LEAVES else await asyncio.to_thread(work)
