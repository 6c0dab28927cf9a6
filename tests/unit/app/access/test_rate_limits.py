from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.access.rate_limits import RateLimiter, StreamLimiter


class Hand:
    """A clock that goes on when told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_is_let_through_and_then_the_rate_holds():
    clock = Hand()
    rates = RateLimiter(10.0, monotonic_s=clock)
    assert [rates.wait_s("one") for _ in range(20)] == [0.0] * 20
    assert rates.wait_s("one") == pytest.approx(0.1)
    clock.now_s += 0.1
    assert rates.wait_s("one") == 0.0
    assert rates.wait_s("one") > 0.0


def test_one_caller_does_not_use_up_what_another_may_ask():
    rates = RateLimiter(1.0, monotonic_s=Hand())
    while not rates.wait_s("greedy"):
        pass
    assert rates.wait_s("modest") == 0.0


def test_without_a_rate_everything_is_let_through():
    rates = RateLimiter(0.0, monotonic_s=Hand())
    assert {rates.wait_s("one") for _ in range(100_000)} == {0.0}


@given(per_s=st.floats(0.5, 1000), steps=st.lists(st.floats(0, 5), max_size=200))
def test_over_any_time_no_more_is_let_through_than_burst_and_rate_allow(per_s: float, steps: list[float]):
    clock = Hand()
    rates = RateLimiter(per_s, monotonic_s=clock)
    let_through = 0
    for step in steps:
        clock.now_s += step
        let_through += rates.wait_s("one") == 0.0
    assert let_through <= max(1.0, 2 * per_s) + per_s * sum(steps) + 1e-6


def test_a_stream_that_ends_makes_room_for_another():
    streams = StreamLimiter(1)
    with streams.open_stream("one"):
        assert streams.full("one")
        assert not streams.full("two")
    assert not streams.full("one")
