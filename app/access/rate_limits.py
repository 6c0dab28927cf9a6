"""How much one caller may ask: so many requests a second, so many open streams. Counted per process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_BURST_S = 2.0
_MANY = 10_000


class Rates:
    """A bucket of tokens for each caller, filled at a steady rate."""

    def __init__(self, per_s: float, *, monotonic_s: Callable[[], float]) -> None:
        """``per_s``: requests a second, with a burst of ``_BURST_S`` seconds' worth; 0: any number."""
        self._per_s = per_s
        self._burst = max(1.0, per_s * _BURST_S)
        self._now = monotonic_s
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait_s(self, owner: str) -> float:
        """Take a token: 0 when there was one, else the seconds until there is."""
        if not self._per_s:
            return 0.0
        now = self._now()
        tokens, since = self._buckets.get(owner, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_s)
        if tokens < 1.0:
            self._buckets[owner] = (tokens, now)
            return (1.0 - tokens) / self._per_s
        if len(self._buckets) > _MANY:
            self._forget_full(now)
        self._buckets[owner] = (tokens - 1.0, now)
        return 0.0

    def _forget_full(self, now: float) -> None:
        """Drop the buckets that have filled up again: a fresh one is the same."""
        fills_s = self._burst / self._per_s
        self._buckets = {owner: each for owner, each in self._buckets.items() if now - each[1] < fills_s}


class Guesses:
    """How often somebody may try a short secret: each client, and all of them together."""

    _EACH_PER_S, _ALL_PER_S = 0.5, 5.0

    def __init__(self, *, monotonic_s: Callable[[], float]) -> None:
        self._each = Rates(self._EACH_PER_S, monotonic_s=monotonic_s)
        self._all = Rates(self._ALL_PER_S, monotonic_s=monotonic_s)

    def wait_s(self, client: str) -> float:
        """Take a try: 0 when there was one, else the seconds until there is."""
        return self._each.wait_s(client) or self._all.wait_s("")


class Streams:
    """The open event streams of each caller."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    def full(self, owner: str) -> bool:
        """Whether ``owner`` has as many open as may be."""
        return self._open[owner] >= self._most

    @contextmanager
    def one_more(self, owner: str) -> Iterator[None]:
        """One that is open during the block."""
        self._open[owner] += 1
        try:
            yield
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]
