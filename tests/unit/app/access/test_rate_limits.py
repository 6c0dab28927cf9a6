from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.access.keys import RateLimiter, StreamLimiter


class ManualClock:
    """Monotonic clock that the test advances."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def wait_s(rates: RateLimiter, owner: str) -> float:
    allowance = rates.take(owner)
    assert allowance is not None
    return allowance.wait_s


def test_callers_have_separate_rate_limits():
    rates = RateLimiter(1.0, monotonic_s=ManualClock())
    while not wait_s(rates, "greedy"):
        pass
    assert wait_s(rates, "modest") == 0.0


def test_rate_of_zero_means_no_limit():
    rates = RateLimiter(0.0, monotonic_s=ManualClock())
    assert {rates.take("one") for _ in range(100_000)} == {None}


@given(per_s=st.floats(0.5, 1000), steps=st.lists(st.floats(0, 5), max_size=200))
def test_allowed_requests_never_exceed_burst_and_rate(per_s: float, steps: list[float]):
    clock = ManualClock()
    rates = RateLimiter(per_s, monotonic_s=clock)
    let_through = 0
    for step in steps:
        clock.now_s += step
        let_through += wait_s(rates, "one") == 0.0
    assert let_through <= max(1.0, 2 * per_s) + per_s * sum(steps) + 1e-6


def test_closed_stream_frees_its_place():
    streams = StreamLimiter(1)
    with streams.open_stream("one"):
        assert streams.is_full("one")
        assert not streams.is_full("two")
    assert not streams.is_full("one")
