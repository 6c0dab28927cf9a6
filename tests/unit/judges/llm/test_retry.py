from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import pytest

from judges.errors import LLMRejected, LLMTimeout, LLMUnavailable
from judges.llm.retry import Retrier, RetryPolicy, parse_retry_after, retry_window
from tests.fakes.clock import FakeClock


def failing(
    *faults: Exception | None, clock: FakeClock | None = None, each_s: float = 0.0
) -> Callable[[], Awaitable[str]]:
    """Return an attempt that raises these errors in order (None: succeeds) and takes ``each_s`` each time."""
    pending = list(faults)

    async def attempt() -> str:
        if clock is not None:
            clock.now += each_s
        fault = pending.pop(0) if pending else None
        if fault is not None:
            raise fault
        return "reply"

    return attempt


def retrier(clock: FakeClock, policy: RetryPolicy | None = None, slot: asyncio.Semaphore | None = None) -> Retrier:
    """Return a retrier without jitter."""
    return Retrier(
        policy or RetryPolicy(),
        slot or asyncio.Semaphore(1),
        clock=clock,
        sleep=clock.sleep,
        jitter=lambda seconds: seconds,
    )


def unavailable(retry_after_s: float | None = None) -> LLMUnavailable:
    return LLMUnavailable("503", status=503, retry_after_s=retry_after_s)


async def test_retries_end_with_the_first_success():
    clock = FakeClock()
    assert await retrier(clock).run(failing(unavailable(), unavailable(), None)) == "reply"
    assert clock.sleeps == pytest.approx([5 / 3, 10 / 3])


@pytest.mark.parametrize(
    ("total_s", "each_s", "is_long", "starts"),
    [
        (60.0, 0.0, False, [0, 5 / 3, 5, 15, 45]),
        (6.0, 0.0, False, [0, 1 / 6, 0.5, 1.5, 4.5]),
        (60.0, 10.0, False, [0, 10 + 5 / 3, 20 + 10 / 3, 30 + 5, 45 + 5 / 3]),
    ],
)
async def test_attempts_are_spread_over_the_time_limit(
    total_s: float, each_s: float, is_long: bool, starts: list[float]
):
    clock, started = FakeClock(), []

    async def attempt() -> str:
        started.append(clock.now)
        clock.now += each_s
        raise unavailable()

    with pytest.raises(LLMUnavailable):
        await retrier(clock, RetryPolicy(total_s=total_s)).run(attempt, is_long=is_long)
    assert [at - started[0] for at in started] == pytest.approx(starts)


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.1), (2.0, 2.3), (None, 5 / 3)])
async def test_retry_after_replaces_the_backoff(asked: float | None, waited: float):
    clock = FakeClock()
    await retrier(clock).run(failing(unavailable(asked), None))
    assert clock.sleeps == [pytest.approx(waited)]


async def test_permanent_error_is_not_retried():
    clock = FakeClock()
    with pytest.raises(LLMRejected):
        await retrier(clock).run(failing(LLMRejected("401", status=401), None))
    assert clock.sleeps == []


async def test_missing_reply_times_out():
    waiting = Retrier(RetryPolicy(total_s=0.02), asyncio.Semaphore(1))
    with pytest.raises(LLMTimeout, match=r"0\.02 s"):
        await waiting.run(lambda: asyncio.Event().wait())


async def test_no_slot_is_held_during_backoff():
    slot, clock = asyncio.Semaphore(1), FakeClock()
    seen: list[bool] = []

    async def sleep(seconds: float) -> None:
        seen.append(slot.locked())

    one = Retrier(RetryPolicy(), slot, clock=clock, sleep=sleep, jitter=lambda seconds: seconds)
    await one.run(failing(unavailable(), None))
    assert seen == [False]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2.5", 2.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("soon", None),
        ("nan", None),
    ],
)
def test_retry_after_is_parsed_as_seconds_or_date(value: str | None, seconds: float | None):
    assert parse_retry_after(value, now=1000.0) == seconds


async def sleeps_of(window: RetryPolicy, fault: LLMUnavailable) -> list[float]:
    """Return the delays of a request that fails until the window ends, without jitter."""
    clock = FakeClock()

    async def attempt() -> None:
        raise fault

    with pytest.raises(LLMUnavailable):
        await Retrier(window, nullcontext(), clock=clock, sleep=clock.sleep, jitter=lambda seconds: seconds).run(
            attempt
        )
    return clock.sleeps


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (retry_window(), [1, 2, 4, 8, 16, 32, 64, *[120] * 6]),
        (retry_window(initial_delay_s=100, seconds=500), [100, 120, 120, 120]),
        (retry_window(initial_delay_s=0.5, seconds=4), [0.5, 1, 2]),
        (retry_window(seconds=0), []),
    ],
)
async def test_delays_double_up_to_two_minutes_within_the_window(window: RetryPolicy, expected: list[float]):
    assert await sleeps_of(window, LLMUnavailable("503", status=503)) == expected
