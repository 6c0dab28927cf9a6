"""Retries after transient faults with exponential backoff, bounded in number and time.

The decorator of the ``backoff`` package is not used, because it does not support an injected monotonic clock, a
``Retry-After`` header that replaces the delay, and a time limit that includes the current attempt. Waiting for a slot
does not count towards the time limit.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import backoff

from judges.errors import LLMTimeout, LLMUnavailable

T = TypeVar("T")

_LAST_START: Final = 0.75
"""Start of the last attempt, as a share of the time over which attempts are spread. The rest is for its reply."""
_GROWTH: Final = 3.0
_JITTER: Final = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Limits of the retries of one request.

    ``total_s`` limits all attempts and the delays between them. ``long_total_s`` replaces it if the model reasons at
    high effort, because a reply may take minutes.

    Without ``first_wait_s``, the ``max_tries`` attempts are spread over ``total_s``, also at high effort: the last one
    starts after three quarters of it, each earlier one after a third of the time of the next. Each delay is up to a
    quarter shorter at random. With ``first_wait_s``, the maximum delay doubles from it up to ``max_wait_s``, and each
    delay is random below it (full jitter). ``Retry-After`` is always observed. If it would exceed ``total_s``, the
    request fails at once.

    With ``attempt_s``, each attempt has its own time limit, after which it is retried, and only the start of an attempt
    must be within ``total_s``. Without it, the last attempt ends with ``total_s``. ``max_tries`` None: no maximum.
    """

    max_tries: int | None = 5
    attempt_s: float | None = None
    total_s: float = 60.0
    long_total_s: float = 900.0
    first_wait_s: float | None = None
    max_wait_s: float = 20.0


def retry_window(*, seconds: float = 900.0, initial_delay_s: float = 1.0, attempt_s: float = 600.0) -> RetryPolicy:
    """Return the policy to retry without a maximum number.

    Args:
        seconds: Time from the first attempt after which no further one starts.
        initial_delay_s: Delay before the first retry. It doubles up to two minutes.
        attempt_s: Time limit of one attempt.
    """
    return RetryPolicy(
        max_tries=None,
        total_s=seconds,
        long_total_s=seconds,
        first_wait_s=initial_delay_s,
        max_wait_s=120.0,
        attempt_s=attempt_s,
    )


class Retrier:
    """Runs attempts according to a policy. ``slot`` is acquired for each attempt and released during delays."""

    def __init__(
        self,
        policy: RetryPolicy,
        slot: AbstractAsyncContextManager[Any],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[float], float] = backoff.full_jitter,
    ) -> None:
        self._policy = policy
        self._slot = slot
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter

    async def run(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        on_retry: Callable[[LLMUnavailable], None] = lambda fault: None,
        is_long: bool = False,
    ) -> T:
        """Return the first result of ``attempt``. ``on_retry`` receives each fault that is followed by a retry.

        Raises:
            LLMUnavailable: the last transient fault, after the policy is exhausted.
            LLMTimeout: the time limit expired during an attempt.
        """
        total_s = self._policy.long_total_s if is_long else self._policy.total_s
        spent, tries = 0.0, 0
        while True:
            tries += 1
            async with self._slot:
                started = self._clock()
                try:
                    return await self._attempt(attempt, total_s, spent)
                except LLMUnavailable as error:
                    spent += self._clock() - started
                    wait = self._wait(tries, spent, total_s, error.retry_after_s)
                    is_last = self._policy.max_tries is not None and tries >= self._policy.max_tries
                    if is_last or not error.should_retry or spent + wait >= total_s:
                        raise
                    on_retry(error)
            await self._sleep(wait)
            spent += wait

    async def _attempt(self, attempt: Callable[[], Awaitable[T]], total_s: float, spent: float) -> T:
        limit = total_s - spent if self._policy.attempt_s is None else self._policy.attempt_s
        try:
            async with asyncio.timeout(limit):
                return await attempt()
        except TimeoutError as error:
            raised = LLMTimeout(f"no reply within {limit if self._policy.attempt_s else total_s:g} s")
            raised.should_retry = self._policy.attempt_s is not None
            raise raised from error

    def _wait(self, tries: int, spent: float, total_s: float, retry_after_s: float | None) -> float:
        """Return the delay in seconds: ``Retry-After`` plus a short jitter, so that clients do not return at once."""
        policy = self._policy
        if policy.max_tries is None or policy.first_wait_s is not None:
            # The exponent is limited, because larger powers overflow.
            planned_s = min(policy.max_wait_s, (policy.first_wait_s or 1.0) * 2.0 ** min(tries - 1, 60))
            least_s = 0.0
        else:
            first_s = _LAST_START * min(total_s, policy.total_s) / _GROWTH ** (policy.max_tries - 2)
            planned_s = max(first_s, first_s * _GROWTH ** (tries - 1) - spent)
            least_s = (1 - _JITTER) * planned_s
        if retry_after_s is None:
            return least_s + self._jitter(planned_s - least_s)
        return retry_after_s + self._jitter(min(1.0, planned_s, 0.1 * retry_after_s + 0.1))


def parse_retry_after(value: str | None, *, now: float) -> float | None:
    """Parse a ``Retry-After`` header, given in seconds or as an HTTP date. Return seconds, or None if it is invalid.

    ``now`` is the wall clock in seconds since the epoch.

    >>> parse_retry_after("2", now=0), parse_retry_after("soon", now=0)
    (2.0, None)
    >>> parse_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now=50)
    10.0
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:
        return max(0.0, seconds) if not math.isnan(seconds) else None
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
