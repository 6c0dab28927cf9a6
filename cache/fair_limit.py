"""Limit of concurrent captures that is shared fairly between answers."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count

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
