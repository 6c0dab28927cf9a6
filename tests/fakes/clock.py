"""Time that passes only when a test lets it."""

from __future__ import annotations


class FakeClock:
    """A monotonic clock and a sleep that moves it. ``sleeps`` are the seconds asked for, in order."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
