from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.errors import LLMRejected, LLMTimeout, LLMUnavailable
from judges.llm.retry import Retrier, RetryPolicy, parse_retry_after
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


async def test_attempts_are_limited_and_counted():
    clock = FakeClock()
    with pytest.raises(LLMUnavailable) as caught:
        await retrier(clock).run(failing(*[unavailable()] * 20))
    assert caught.value.tries == 5
    assert clock.sleeps == pytest.approx([5 / 3, 10 / 3, 10.0, 30.0])


@pytest.mark.parametrize(
    ("total_s", "each_s", "is_long", "starts"),
    [
        (60.0, 0.0, False, [0, 5 / 3, 5, 15, 45]),
        (6.0, 0.0, False, [0, 1 / 6, 0.5, 1.5, 4.5]),
        (3600.0, 0.0, False, [0, 100, 300, 900, 2700]),
        (60.0, 0.0, True, [0, 5 / 3, 5, 15, 45]),
        (60.0, 4.0, False, [0, 4 + 5 / 3, 8 + 10 / 3, 17, 45]),
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


@pytest.mark.parametrize("tries", [1, 2, 3, 10])
async def test_last_attempt_leaves_time_for_its_reply(tries: int):
    clock = FakeClock()
    with pytest.raises(LLMUnavailable):
        await retrier(clock, RetryPolicy(max_tries=tries)).run(failing(*[unavailable()] * 20))
    assert sum(clock.sleeps) == pytest.approx(45 if tries > 1 else 0)


async def test_total_time_is_limited():
    clock = FakeClock()
    with pytest.raises(LLMUnavailable) as caught:
        await retrier(clock).run(failing(*[unavailable()] * 20, clock=clock, each_s=25.0))
    assert caught.value.tries == 3
    assert clock.now - 1000 <= 80


async def test_wait_that_exceeds_the_total_time_is_not_started():
    clock = FakeClock()
    with pytest.raises(LLMUnavailable) as caught:
        await retrier(clock, RetryPolicy(total_s=10)).run(failing(unavailable(retry_after_s=30)))
    assert (caught.value.tries, clock.sleeps) == (1, [])


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.1), (2.0, 2.3), (20.0, 21.0), (58.0, 59.0), (None, 5 / 3)])
async def test_retry_after_replaces_the_backoff(asked: float | None, waited: float):
    clock = FakeClock()
    await retrier(clock).run(failing(unavailable(asked), None))
    assert clock.sleeps == [pytest.approx(waited)]


@pytest.mark.parametrize("asked", [60.0, 3600.0, float("inf")])
async def test_no_attempt_is_made_before_the_requested_time(asked: float):
    clock = FakeClock()
    with pytest.raises(LLMUnavailable):
        await retrier(clock).run(failing(unavailable(asked), None))
    assert clock.sleeps == []


async def test_permanent_error_is_not_retried():
    clock = FakeClock()
    with pytest.raises(LLMRejected):
        await retrier(clock).run(failing(LLMRejected("401", status=401), None))
    assert clock.sleeps == []


async def test_missing_reply_times_out():
    waiting = Retrier(RetryPolicy(total_s=0.02), asyncio.Semaphore(1))
    with pytest.raises(LLMTimeout, match=r"0\.02 s"):
        await waiting.run(lambda: asyncio.Event().wait())


async def test_wait_for_a_slot_does_not_count_towards_the_total_time():
    slot, clock = asyncio.Semaphore(1), FakeClock()
    await slot.acquire()
    task = asyncio.create_task(retrier(clock, slot=slot).run(failing(unavailable(), None)))
    await asyncio.sleep(0)
    clock.now += 1000
    slot.release()
    assert await task == "reply"


async def test_no_slot_is_held_during_backoff():
    slot, clock = asyncio.Semaphore(1), FakeClock()
    seen: list[bool] = []

    async def sleep(seconds: float) -> None:
        seen.append(slot.locked())

    one = Retrier(RetryPolicy(), slot, clock=clock, sleep=sleep, jitter=lambda seconds: seconds)
    await one.run(failing(unavailable(), None))
    assert seen == [False]


async def test_jitter_shortens_the_delay_by_up_to_a_quarter():
    clock = FakeClock()
    await Retrier(RetryPolicy(), asyncio.Semaphore(1), clock=clock, sleep=clock.sleep).run(failing(unavailable(), None))
    assert 1.25 <= clock.sleeps[0] <= 5 / 3


async def test_jitter_stays_below_the_backoff():
    clock = FakeClock()
    jittered = Retrier(RetryPolicy(first_wait_s=1.0), asyncio.Semaphore(1), clock=clock, sleep=clock.sleep)
    await jittered.run(failing(*[unavailable()] * 4, None))
    assert all(0 <= wait <= most for wait, most in zip(clock.sleeps, (1, 2, 4, 8), strict=True))
    assert len(set(clock.sleeps)) == 4


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("2.5", 2.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("nan", None),
        ("Thu, 99 Jan 1970", None),
        (None, None),
    ],
)
def test_retry_after_is_parsed_as_seconds_or_date(value: str | None, seconds: float | None):
    assert parse_retry_after(value, now=1000.0) == seconds


@given(st.text())
def test_any_header_is_parsed_without_an_error(value: str):
    seconds = parse_retry_after(value, now=1000.0)
    assert seconds is None or seconds >= 0


async def test_without_a_maximum_retries_end_with_the_time_limit():
    clock = FakeClock()
    policy = RetryPolicy(max_tries=None, total_s=900, first_wait_s=1, max_wait_s=120, attempt_s=600)
    with pytest.raises(LLMUnavailable):
        await retrier(clock, policy).run(failing(*[unavailable()] * 50))
    assert clock.sleeps == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, *[120.0] * 6]


async def test_fault_that_the_provider_declares_final_is_not_retried():
    clock, fault = FakeClock(), unavailable()
    fault.should_retry = False
    with pytest.raises(LLMUnavailable):
        await retrier(clock).run(failing(fault))
    assert clock.sleeps == []


async def test_attempt_with_its_own_time_limit_is_retried():
    hanging = [True]

    async def attempt() -> str:
        if hanging.pop() if hanging else False:
            await asyncio.Event().wait()
        return "reply"

    policy = RetryPolicy(max_tries=None, total_s=900, attempt_s=0.01)
    assert await retrier(FakeClock(), policy).run(attempt) == "reply"
