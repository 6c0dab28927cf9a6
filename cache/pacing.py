"""Pacing: minimum interval between requests to the same host, so that a site that is cited often is not overloaded.

``app.storage`` implements ``HostPacing`` for several workers.

Captures of hosts that did not respond in time are ordered so that they do not delay other hosts. The limit of
concurrent captures is shared fairly between answers.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeVar

import structlog

from cache.capture import CaptureOutcome, Capturer, Observation
from cache.urls import host_and_port


class HostPacing(Protocol):
    """Minimum interval between requests to the same host."""

    async def wait(self, host: str, interval_s: float) -> None:
        """Wait until the next request to ``host`` may start: ``interval_s`` seconds after the previous one."""


class ProcessHostPacing:
    """HostPacing for a single process."""

    def __init__(
        self, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._now = now
        self._sleep = sleep
        self._next: dict[str, float] = {}

    async def wait(self, host: str, interval_s: float) -> None:
        now = self._now()
        begin = max(now, self._next.get(host, now))
        self._next = {known: at for known, at in self._next.items() if at > now}
        self._next[host] = begin + interval_s
        if begin > now:
            await self._sleep(begin - now)


class PacedCapturer:
    """Capturer with a rate limit per host, except the operator's own hosts. It closes the wrapped capturer."""

    def __init__(
        self,
        capturer: Capturer,
        pacing: HostPacing,
        *,
        interval_s: float,
        is_exempt: Callable[[tuple[str, int]], bool] = lambda host_port: False,
    ) -> None:
        """``interval_s``: seconds between the starts of two captures of a host. ``is_exempt`` gets (host, port)."""
        self._capturer = capturer
        self._pacing = pacing
        self._interval_s = interval_s
        self._is_exempt = is_exempt

    async def capture(self, url: str) -> Observation:
        try:
            host_port = host_and_port(url)
        except ValueError:
            return await self._capturer.capture(url)
        if self._interval_s > 0 and not self._is_exempt(host_port):
            await self._pacing.wait(host_port[0], self._interval_s)
        return await self._capturer.capture(url)

    @property
    def sandboxed(self) -> bool | None:
        """Whether the wrapped capturer runs in a sandbox; None if unknown."""
        value: bool | None = getattr(self._capturer, "sandboxed", None)
        return value

    async def aclose(self) -> None:
        await self._capturer.aclose()


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
    """Hosts whose last capture timed out, for ``SLOW_FOR_S`` seconds after it."""

    def __init__(
        self,
        *,
        pages_per_host: int = 2,
        deadline_s: float = SLOW_DEADLINE_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a record.

        Args:
            pages_per_host: Maximum concurrent captures of a host for one answer.
            deadline_s: Time limit of captures of slow hosts.
            now: Monotonic clock in seconds.
        """
        self._pages_per_host = pages_per_host
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
            self._until[host] = now + SLOW_FOR_S
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


LEND_AFTER_S = 5.0
_NOBODY = (None,)
_answer: ContextVar[object] = ContextVar("answer", default=None)
_askers: ContextVar[Sequence[object]] = ContextVar("askers", default=_NOBODY)


@contextmanager
def on_behalf_of(answer: object) -> Iterator[None]:
    """Count captures that are requested in the block to the share of ``answer``."""
    token = _answer.set(answer)
    try:
        yield
    finally:
        _answer.reset(token)


class Askers:
    """Answers that wait for a page, by page. A capture that several answers wait for counts to the share of one."""

    def __init__(self) -> None:
        self._by_page: dict[str, list[object]] = {}

    @contextmanager
    def waiting(self, page: str) -> Iterator[None]:
        """Let the answer of this context wait for a page, also if its capture was already requested by another one."""
        answer, askers = _answer.get(), self._by_page.setdefault(page, [])
        askers.append(answer)
        token = _askers.set(askers)
        try:
            yield
        finally:
            _askers.reset(token)
            askers.remove(answer)
            if not askers and self._by_page.get(page) is askers:
                del self._by_page[page]


@dataclass(slots=True, eq=False)
class _Visit:
    """Capture that waits for a slot or has one. ``askers`` can change while it waits."""

    host: object
    askers: Sequence[object]
    granted: asyncio.Future[None]
    answer: object = None
    """The answer to whose share it counts."""
    young: asyncio.TimerHandle | None = None
    """Timer that ends when the slot is lent to other answers; None before and after."""


class FairLimit:
    """Limit of concurrent captures, in total and per host.

    A free slot goes to the waiting answer with the fewest slots, and among these to the one that got one least
    recently. A capture that waits for its host has no slot. A capture that has had its slot for ``lend_after_s`` lends
    it to an answer without a slot, so that pages that do not respond do not block other answers. At most ``total``
    slots are lent.
    """

    def __init__(self, total: float = math.inf, *, per_host: int = 2, lend_after_s: float = LEND_AFTER_S) -> None:
        self._total = total
        self._per_host = per_host
        self._lend_after_s = lend_after_s
        self._waiting: dict[_Visit, None] = {}
        self._running: set[_Visit] = set()
        self._numbers = count(1)
        self._last: dict[object, int] = {}
        """Number of the last slot of each answer that waits or has a slot."""

    @asynccontextmanager
    async def slot(self, host: object) -> AsyncIterator[None]:
        """Have a slot for a capture of ``host`` during the block."""
        visit = _Visit(host, _askers.get(), asyncio.get_running_loop().create_future())
        self._waiting[visit] = None
        self._assign()
        try:
            await visit.granted
            yield
        finally:
            self._waiting.pop(visit, None)
            self._running.discard(visit)
            if visit.young is not None:
                visit.young.cancel()
            self._assign()

    def _assign(self) -> None:
        """Give slots to waiting captures while there are any."""
        while True:
            held = Counter(visit.answer for visit in self._running)
            hosts = Counter(visit.host for visit in self._running)
            waiting = [(visit, answer) for visit in self._waiting for answer in visit.askers]
            ready = [(visit, answer) for visit, answer in waiting if hosts[visit.host] < self._per_host]
            if not ready:
                return
            visit, answer = min(ready, key=lambda each: (held[each[1]], self._last.get(each[1], 0)))
            lent = 0 if held[answer] else min(self._total, sum(1 for each in self._running if each.young is None))
            if len(self._running) >= self._total + lent:
                return
            self._last[answer] = next(self._numbers)
            self._last = {each: self._last.get(each, 0) for each in {*held, *(who for _, who in waiting)}}
            self._grant(visit, answer)

    def _grant(self, visit: _Visit, answer: object) -> None:
        def lend() -> None:
            visit.young = None
            self._assign()

        del self._waiting[visit]
        self._running.add(visit)
        visit.answer = answer
        visit.young = asyncio.get_running_loop().call_later(self._lend_after_s, lend)
        if not visit.granted.done():  # its task was cancelled, and gives the slot back
            visit.granted.set_result(None)
