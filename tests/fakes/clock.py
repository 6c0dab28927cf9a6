"""Fake clock: time passes only when a test advances it."""

from __future__ import annotations


class FakeClock:
    """Monotonic clock and a sleep that advances it. ``sleeps`` are the requested seconds, in order."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
