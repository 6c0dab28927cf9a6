"""Plain HTTP fetch through the egress guard, for the tools of judge scripts, not for evidence."""

from __future__ import annotations

import asyncio

from cache.backends.http import HttpCapturer
from cache.capture import Observation
from cache.egress.guard import EgressProxy
from mind2web2.environment import egress_allow

DEADLINE_S = 60.0


async def fetch(url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
    """Fetch a URL once. The page kind is detected from the bytes. Network errors are reported in the observation."""
    async with EgressProxy(egress_allow()) as guard:
        return await HttpCapturer(guard, semaphore=asyncio.Semaphore(1), deadline_s=deadline_s).capture(url)
