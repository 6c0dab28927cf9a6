"""Delay between visits to one host."""

from __future__ import annotations

from cache.pacing import PacedCapturer, ProcessHostPacing
from tests.unit.cache.scripted import Clock, ScriptedCapturer


class ManualClock:
    """Monotonic clock that the test advances, with a sleep function that records its delays."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))

    def pace(self) -> ProcessHostPacing:
        return ProcessHostPacing(now=lambda: self.now, sleep=self.sleep)


async def test_visits_to_one_host_start_an_interval_apart() -> None:
    time = ManualClock()
    paced = PacedCapturer(ScriptedCapturer(Clock()), time.pace(), interval_s=0.5)
    for n in range(3):
        await paced.capture(f"https://a.com/{n}")
    await paced.capture("https://b.com/")
    assert time.slept == [0.5, 1.0]
    time.now += 1.2
    await paced.capture("http://A.com/late")
    assert time.slept == [0.5, 1.0, 0.3]
    time.now += 10
    await paced.capture("https://a.com/much-later")
    assert len(time.slept) == 3


async def test_own_hosts_and_an_interval_of_zero_cause_no_delay() -> None:
    time = ManualClock()
    inner = ScriptedCapturer(Clock())
    exempt = PacedCapturer(
        inner, time.pace(), interval_s=5, is_exempt=lambda host_port: host_port == ("127.0.0.1", 8765)
    )
    unpaced = PacedCapturer(inner, time.pace(), interval_s=0)
    for _ in range(3):
        await exempt.capture("http://127.0.0.1:8765/x")
        await unpaced.capture("https://a.com/")
        await exempt.capture("no address at all")
    assert time.slept == []
    await exempt.aclose()
    assert inner.closed
