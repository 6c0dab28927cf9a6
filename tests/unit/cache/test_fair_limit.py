"""Shares of answers in the limit of concurrent captures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from cache.pacing import Askers, FairLimit, on_behalf_of


class Captures:
    """Captures that run until they are told to end. ``started`` lists their names in order.

    A name is the letter of the answer, a number, and the host (default: a host of its own).
    """

    def __init__(self, limit: FairLimit) -> None:
        self.started: list[str] = []
        self._limit = limit
        self._askers = Askers()
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def request(self, *names: str) -> None:
        """Request captures for the answers that the first letters name."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._capture(name))
        await _settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await _settle()

    async def _capture(self, name: str) -> None:
        with on_behalf_of(name[0]), self._askers.waiting(name):
            async with self._limit.slot(name[2:] or name):
                self.started.append(name)
                await self._ends[name].wait()


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("total", "requested", "ends", "started"),
    [
        (2, ["a1", "a2", "a3", "a4"], ["a1", "a2"], ["a1", "a2", "a3", "a4"]),  # one answer uses all slots
        (2, ["a1", "a2", "a3", "b1", "b2"], ["a1", "a2"], ["a1", "a2", "b1", "a3"]),
        (1, ["a1", "a2", "a3", "b1", "b2"], ["a1", "b1", "a2"], ["a1", "b1", "a2", "b2"]),  # in turn
        (4, ["a1", "a2", "a3", "a4", "a5", "b1", "b2"], ["a1", "a2"], ["a1", "a2", "a3", "a4", "b1", "b2"]),  # fewest
    ],
)
async def test_free_slots_go_to_answers_in_turn(
    total: int, requested: Sequence[str], ends: Sequence[str], started: Sequence[str]
):
    captures = Captures(FairLimit(total, lend_after_s=3600))
    await captures.request(*requested)
    for name in ends:
        await captures.end(name)
    assert captures.started == started


@pytest.mark.parametrize(
    ("requested", "started"),
    [
        (["a1", "a2", "a3", "b1", "b2"], {"a1", "a2", "b1"}),  # one slot for the other answer, and none for its own
        (["a1", "b1", "c1", "d1", "e1", "f1"], {"a1", "b1", "c1", "d1"}),  # at most twice as many captures
    ],
)
async def test_slot_of_a_slow_capture_is_lent_to_answers_without_a_slot(requested: Sequence[str], started: set[str]):
    captures = Captures(FairLimit(2, lend_after_s=0))
    await captures.request(*requested)
    for _ in requested:
        await _settle()
    assert set(captures.started) == started
