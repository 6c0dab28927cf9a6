"""Offloading of CPU-bound text work: long texts go to a thread so that they do not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

LARGE_TEXT_CHARS: Final = 50_000
"""Below this size, the work takes 1-2 ms, which is about the cost of a thread switch."""


async def run_cpu_bound(work: Callable[[], T], *texts: str) -> T:
    """Return the result of ``work``, run in a thread if ``texts`` are long."""
    return work() if sum(map(len, texts)) < LARGE_TEXT_CHARS else await asyncio.to_thread(work)
