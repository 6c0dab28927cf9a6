"""One fetch through the egress guard and without a browser: for the tools of judge scripts, not for evidence."""

from __future__ import annotations

import asyncio

from cache.backends.http import HttpCapturer
from cache.capture import Observation
from cache.egress.guard import EgressGuard
from mind2web2.environment import egress_allow

DEADLINE_S = 60.0


async def fetch(url: str, *, deadline_s: float = DEADLINE_S) -> Observation:
    """What one GET brings, its type told by its bytes; never raises for what the web does."""
    async with EgressGuard(egress_allow()) as guard:
        return await HttpCapturer(guard, semaphore=asyncio.Semaphore(1), deadline_s=deadline_s).capture(url)
