"""Work on texts: short ones at once, long ones in a thread, where they cannot hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

LARGE_TEXT_CHARS: Final = 50_000
"""Up to here a text is worked on in a millisecond or two, which is little more than being handed to a thread costs."""


async def worked_out(work: Callable[[], T], *texts: str) -> T:
    """What ``work`` on these texts gives."""
    return work() if sum(map(len, texts)) < LARGE_TEXT_CHARS else await asyncio.to_thread(work)
