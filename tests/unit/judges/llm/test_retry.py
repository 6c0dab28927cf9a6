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
    """An attempt that raises these faults one after the other (None: succeeds), each taking ``each_s``."""
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
    """Without jitter: waits are exactly as planned."""
    return Retrier(
        policy or RetryPolicy(),
        slot or asyncio.Semaphore(1),
        clock=clock,
        sleep=clock.sleep,
        jitter=lambda seconds: seconds,
    )


def unavailable(retry_after_s: float | None = None) -> LLMUnavailable:
    return LLMUnavailable("503", status=503, retry_after_s=retry_after_s)


async def test_the_first_success_ends_the_trying():
    clock = FakeClock()
    assert await retrier(clock).run(failing(unavailable(), unavailable(), None)) == "reply"
    assert clock.sleeps == [1.0, 2.0]


async def test_tries_are_bounded_and_counted():
    clock = FakeClock()
    with pytest.raises(LLMUnavailable) as caught:
        await retrier(clock).run(failing(*[unavailable()] * 20))
    assert caught.value.tries == 5
    assert clock.sleeps == [1.0, 2.0, 4.0, 8.0]


async def test_time_is_bounded_before_tries_are():
    clock = FakeClock()
    with pytest.raises(LLMUnavailable) as caught:
        await retrier(clock).run(failing(*[unavailable()] * 20, clock=clock, each_s=25.0))
    assert caught.value.tries == 3
    assert clock.now - 1000 <= 80


async def test_no_wait_is_begun_that_would_not_end_in_time():
    clock = FakeClock()
    with pytest.raises(LLMUnavailable) as caught:
        await retrier(clock, RetryPolicy(total_s=10)).run(failing(unavailable(retry_after_s=30)))
    assert (caught.value.tries, clock.sleeps) == (1, [])


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.1), (2.0, 2.3), (20.0, 21.0), (58.0, 59.0), (None, 1.0)])
async def test_retry_after_replaces_the_planned_wait(asked: float | None, waited: float):
    clock = FakeClock()
    await retrier(clock).run(failing(unavailable(asked), None))
    assert clock.sleeps == [pytest.approx(waited)]


@pytest.mark.parametrize("asked", [60.0, 3600.0, float("inf")])
async def test_nobody_is_asked_before_the_time_it_told(asked: float):
    clock = FakeClock()
    with pytest.raises(LLMUnavailable):
        await retrier(clock).run(failing(unavailable(asked), None))
    assert clock.sleeps == []


async def test_what_is_refused_for_good_is_not_tried_again():
    clock = FakeClock()
    with pytest.raises(LLMRejected):
        await retrier(clock).run(failing(LLMRejected("401", status=401), None))
    assert clock.sleeps == []


async def test_a_reply_that_never_comes_ends_in_time():
    waiting = Retrier(RetryPolicy(total_s=0.02), asyncio.Semaphore(1))
    with pytest.raises(LLMTimeout, match=r"0\.02 s"):
        await waiting.run(lambda: asyncio.Event().wait())


async def test_waiting_for_a_slot_does_not_count_against_the_limit():
    slot, clock = asyncio.Semaphore(1), FakeClock()
    await slot.acquire()
    task = asyncio.create_task(retrier(clock, slot=slot).run(failing(unavailable(), None)))
    await asyncio.sleep(0)
    clock.now += 1000
    slot.release()
    assert await task == "reply"


async def test_no_slot_is_held_while_waiting():
    slot, clock = asyncio.Semaphore(1), FakeClock()
    seen: list[bool] = []

    async def sleep(seconds: float) -> None:
        seen.append(slot.locked())

    one = Retrier(RetryPolicy(), slot, clock=clock, sleep=sleep, jitter=lambda seconds: seconds)
    await one.run(failing(unavailable(), None))
    assert seen == [False]


async def test_waits_are_drawn_at_random_below_the_planned_ones():
    clock = FakeClock()
    jittered = Retrier(RetryPolicy(), asyncio.Semaphore(1), clock=clock, sleep=clock.sleep)
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
def test_retry_after_is_read_in_seconds_and_as_a_date(value: str | None, seconds: float | None):
    assert parse_retry_after(value, now=1000.0) == seconds


@given(st.text())
def test_no_header_of_any_kind_raises(value: str):
    seconds = parse_retry_after(value, now=1000.0)
    assert seconds is None or seconds >= 0
