"""Hosts that did not respond in time, and the order of captures that keeps them from delaying other hosts."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import structlog

from cache.capture import CaptureOutcome, Observation
from cache.urls import host_and_port

SLOW_FOR_S = 300.0
SLOW_DEADLINE_S = 15.0
T = TypeVar("T")
_log = structlog.get_logger(__name__)
_deadline_s: ContextVar[float] = ContextVar("deadline_s", default=math.inf)


def time_limit(usual_s: float) -> tuple[float, str]:
    """Return the time limit of a capture in this context, and the reason if it expires."""
    limit_s = min(usual_s, _deadline_s.get())
    before = "; the host had not responded to an earlier page" if limit_s < usual_s else ""
    return limit_s, f"no response within {limit_s:g} s{before}"


class SlowHosts:
    """Hosts whose last capture timed out, for ``slow_for_s`` seconds after it."""

    def __init__(
        self,
        *,
        pages_per_host: int = 2,
        slow_for_s: float = SLOW_FOR_S,
        deadline_s: float = SLOW_DEADLINE_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a record.

        Args:
            pages_per_host: Maximum concurrent captures of a host for one answer.
            slow_for_s: Time after which a host is no longer slow.
            deadline_s: Time limit of captures of slow hosts.
            now: Monotonic clock in seconds.
        """
        self._pages_per_host = pages_per_host
        self._slow_for_s = slow_for_s
        self._deadline_s = deadline_s
        self._now = now
        self._until: dict[tuple[str, int], float] = {}

    def __contains__(self, url: str) -> bool:
        return self._until.get(_host(url), -math.inf) > self._now()

    def record(self, seen: Observation) -> None:
        """Record whether the last host of a visit responded."""
        now, host = self._now(), _host(seen.final_url or seen.url)
        self._until = {host: until for host, until in self._until.items() if until > now}
        if seen.outcome is CaptureOutcome.TIMEOUT:
            self._until[host] = now + self._slow_for_s
        else:
            self._until.pop(host, None)
            self._until.pop(_host(seen.url), None)

    @contextmanager
    def limited(self, url: str) -> Iterator[None]:
        """Shorten the time limit of captures in the block if the host of ``url`` is slow."""
        token = _deadline_s.set(self._deadline_s if url in self else math.inf)
        try:
            yield
        finally:
            _deadline_s.reset(token)

    async def run_by_host(
        self, pages: Iterable[T], visit: Callable[[T], Awaitable[None]], *, url_of: Callable[[T], str] = str
    ) -> None:
        """Call ``visit`` once for each page, concurrently within the limit per host.

        A page of a slow host is put aside at once, and visited after all the others.

        Raises:
            ExceptionGroup: Errors of ``visit``. The other calls are cancelled.
        """
        put_aside: list[T] = []

        async def turn(page: T, slots: asyncio.Semaphore, *, is_last: bool) -> None:
            async with slots:
                if is_last or url_of(page) not in self:
                    await visit(page)
                    return
            _log.info("page put aside, its host timed out", url=url_of(page))
            put_aside.append(page)

        for is_last in (False, True):
            slots: dict[object, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(self._pages_per_host))
            async with asyncio.TaskGroup() as group:
                for page in put_aside if is_last else pages:
                    group.create_task(turn(page, slots[_host(url_of(page))], is_last=is_last))


def _host(url: str) -> tuple[str, int]:
    try:
        return host_and_port(url)
    except ValueError:
        return ("", 0)
