"""Asking again after transient faults, bounded in tries and in time.

``backoff`` supplies the waits. The loop is ours, because three things must hold that its decorator does not
give: time is monotonic and injected, a ``Retry-After`` of the provider replaces the wait, and the time limit
covers a reply that never comes. Waiting for a slot does not count against the limit.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import backoff

from judges.errors import LLMTimeout, LLMUnavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """``total_s`` bounds one request: all its attempts and the waits between them. ``long_total_s`` replaces it for a
    request whose reply may take minutes, because the model reasons at high effort.

    Waits grow from ``first_wait_s`` by doubling up to ``max_wait_s``, each drawn at random below that. A
    ``Retry-After`` is waited for in full; where the wait would not end within ``total_s`` the request ends at once.
    """

    max_tries: int = 5
    total_s: float = 60.0
    long_total_s: float = 900.0
    first_wait_s: float = 1.0
    max_wait_s: float = 20.0


class Retrier:
    """Runs attempts by a policy. ``slot`` is held during each attempt and never during a wait."""

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
        """The first result of ``attempt``; ``on_retry`` is told each fault after which there is another one.

        Raises:
            LLMUnavailable: the last transient fault, with the number of ``tries``, once the policy is exhausted.
            LLMTimeout: time ran out while an attempt was waiting for its reply.
        """
        waits = backoff.expo(base=2, factor=self._policy.first_wait_s, max_value=self._policy.max_wait_s)
        next(waits)  # backoff's generators yield once before their first value
        total_s = self._policy.long_total_s if is_long else self._policy.total_s
        spent, tries = 0.0, 0
        while True:
            tries += 1
            async with self._slot:
                started = self._clock()
                try:
                    async with asyncio.timeout(total_s - spent):
                        return await attempt()
                except TimeoutError as error:
                    raise LLMTimeout(f"no reply within {total_s:g} s", tries=tries) from error
                except LLMUnavailable as error:
                    error.tries = tries
                    wait = self._wait(next(waits), error.retry_after_s)
                    spent += self._clock() - started
                    if tries >= self._policy.max_tries or spent + wait >= total_s:
                        raise
                    on_retry(error)
            await self._sleep(wait)
            spent += wait

    def _wait(self, planned_s: float, retry_after_s: float | None) -> float:
        """Seconds to wait: what the provider asks for, and a little more so that not everybody is back at once."""
        if retry_after_s is None:
            return self._jitter(planned_s)
        return retry_after_s + self._jitter(min(1.0, planned_s, 0.1 * retry_after_s + 0.1))


def parse_retry_after(value: str | None, *, now: float) -> float | None:
    """The seconds a ``Retry-After`` header asks for, given in seconds or as an HTTP date; None for garbage.

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
