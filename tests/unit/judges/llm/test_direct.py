from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.errors import LLMUnavailable
from judges.llm.direct import RetryWindow, half_jitter
from judges.llm.retry import Retrier
from tests.fakes.clock import FakeClock


async def sleeps_of(window: RetryWindow, fault: LLMUnavailable) -> list[float]:
    """Return the delays of a request that fails until the window ends, without jitter."""
    clock = FakeClock()

    async def attempt() -> None:
        raise fault

    with pytest.raises(LLMUnavailable):
        await Retrier(window.policy, nullcontext(), clock=clock, sleep=clock.sleep, jitter=lambda seconds: seconds).run(
            attempt
        )
    return clock.sleeps


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (RetryWindow(), [1, 2, 4, 8, 16, 32, 64, *[120] * 6]),
        (RetryWindow(initial_delay_s=100, seconds=500), [100, 120, 120, 120]),
        (RetryWindow(initial_delay_s=0.5, seconds=4), [0.5, 1, 2]),
        (RetryWindow(seconds=0), []),
    ],
)
async def test_delays_double_up_to_two_minutes_within_the_window(window: RetryWindow, expected: list[float]):
    assert await sleeps_of(window, LLMUnavailable("503", status=503)) == expected


async def test_retry_after_replaces_the_delay():
    sleeps = await sleeps_of(RetryWindow(seconds=100), LLMUnavailable("429", status=429, retry_after_s=30))
    assert [round(each) for each in sleeps] == [31, 31, 31]


async def test_fault_that_the_provider_calls_permanent_is_not_retried():
    fault = LLMUnavailable("503", status=503)
    fault.should_retry = False
    assert await sleeps_of(RetryWindow(), fault) == []


@given(st.floats(min_value=0.0, max_value=120.0))
def test_jitter_is_from_half_to_one_and_a_half(planned_s: float):
    assert 0.5 * planned_s <= half_jitter(planned_s) <= 1.5 * planned_s
