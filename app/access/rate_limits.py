"""Rate limits and stream limits, per caller and process."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_BURST_S = 2.0
_MAX_BUCKETS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Requests that a caller may send at once (``limit``), that remain, and seconds until all are available again."""

    limit: int
    remaining: int
    full_in_s: int


class RateLimiter:
    """Token bucket rate limiter with one bucket per caller."""

    def __init__(self, per_s: float, *, monotonic_s: Callable[[], float]) -> None:
        """``per_s``: requests per second, with bursts of ``_BURST_S`` seconds' worth; 0: no limit."""
        self._per_s = per_s
        self._burst = max(1.0, per_s * _BURST_S)
        self._now = monotonic_s
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_s(self, owner: str) -> float:
        """Take a token and return 0, or return the seconds until a token is available."""
        if not self._per_s:
            return 0.0
        now = self._now()
        tokens, since = self._buckets.get(owner, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_s)
        if tokens < 1.0:
            self._buckets[owner] = (tokens, now)
            return (1.0 - tokens) / self._per_s
        if len(self._buckets) > _MAX_BUCKETS:
            self._drop_full_buckets(now)
        self._buckets[owner] = (tokens - 1.0, now)
        return 0.0

    def allowance(self, owner: str) -> Allowance | None:
        """Return what an owner may still send; None: there is no limit."""
        if not self._per_s:
            return None
        tokens, since = self._buckets.get(owner, (self._burst, self._now()))
        tokens = min(self._burst, tokens + (self._now() - since) * self._per_s)
        full_in_s = math.ceil((self._burst - tokens) / self._per_s)
        return Allowance(limit=int(self._burst), remaining=int(tokens), full_in_s=full_in_s)

    def give_back(self, owner: str) -> None:
        """Return a token that was taken."""
        if owner in self._buckets:
            tokens, since = self._buckets[owner]
            self._buckets[owner] = (min(self._burst, tokens + 1.0), since)

    def _drop_full_buckets(self, now: float) -> None:
        """Drop the full buckets. They are equivalent to new ones."""
        fills_s = self._burst / self._per_s
        self._buckets = {owner: each for owner, each in self._buckets.items() if now - each[1] < fills_s}


class StreamLimiter:
    """Limiter of open event streams per caller."""

    def __init__(self, max_open: int) -> None:
        self._max_open = max_open
        self._open: Counter[str] = Counter()

    def is_full(self, owner: str) -> bool:
        """Return whether ``owner`` has the maximum number of streams open."""
        return self._open[owner] >= self._max_open

    @contextmanager
    def open_stream(self, owner: str) -> Iterator[None]:
        """Count one more open stream during the block."""
        self._open[owner] += 1
        try:
            yield
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]
