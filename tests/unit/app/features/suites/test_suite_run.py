"""Step loop with a counting run and without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from app.features.suites.records import Record
from app.features.suites.suite_run import SuiteModel, run_steps
from judges.errors import LLMRejected, LLMUnavailable, RejectionScope


def record(step: int, status: str = "scored", **more: Any) -> dict[str, Any]:
    return {"id": str(step), "position": step, "status": status, "trace": {}} | more


class CountingRun:
    """Run whose steps are numbers. ``fault`` maps steps to the exceptions that they raise.

    The first steps wait until ``wanted_at_once`` of them are judged at the same time.
    """

    def __init__(self, total: int, fault: dict[int, Exception] | None = None, *, wanted_at_once: int = 1) -> None:
        self.total = total
        self.wanted_at_once = wanted_at_once
        self.reached = asyncio.Event()
        self.fault = fault or {}
        self.judged: list[int] = []
        self.read = self.at_once = self.most_at_once = self.furthest_ahead = 0

    def steps(self) -> Iterator[int]:
        for step in range(self.total):
            self.read += 1
            self.furthest_ahead = max(self.furthest_ahead, self.read - len(self.judged))
            yield step

    def step_id(self, step: int) -> str:
        return str(step)

    async def judge(self, step: int, suite_model: SuiteModel) -> Record:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.at_once == self.wanted_at_once:
            self.reached.set()
        await self.reached.wait()
        await asyncio.sleep(0.001 * (step % 3))
        self.at_once -= 1
        if step in self.fault:
            raise self.fault[step]
        self.judged.append(step)
        return record(step)

    def not_judged(self, step: int, reason: str, detail: str, usage: Any) -> Record:
        return record(step, "not_judged", reason=reason, detail=detail)


class MemoryJournal:
    """Journal in memory with the records of an earlier run."""

    def __init__(self, *before: dict[str, Any]) -> None:
        self._before = {one["id"]: one for one in before}
        self.records: list[Record] = []

    async def stored_records(self):
        return self._before

    async def store(self, record: Record) -> None:
        self.records.append(record)


async def run(
    plan: CountingRun, journal: Any = None, *, max_concurrent: int = 3
) -> tuple[list[dict[str, Any]], list[tuple[int, int, bool]]]:
    """Return the records, and how many steps were done, of how many, and whether the newest was reused, each time."""
    seen: list[tuple[int, int, bool]] = []

    def on_step(record: Record, *, done: int, total: int, reused: bool) -> None:
        seen.append((done, total, reused))

    records = await run_steps(
        cast(Any, plan),
        journal or MemoryJournal(),
        SuiteModel.without_model(),
        max_concurrent=max_concurrent,
        on_step=on_step,
    )
    return records, seen


async def test_concurrent_steps_and_steps_read_ahead_are_limited():
    plan = CountingRun(30, wanted_at_once=4)
    async with asyncio.timeout(60):
        await run(plan, max_concurrent=4)
    assert plan.most_at_once == 4
    assert plan.furthest_ahead <= 5


async def test_settled_steps_are_reused_and_steps_not_judged_are_repeated():
    plan = CountingRun(4)
    records, seen = await run(plan, MemoryJournal(record(0), record(1, "not_judged"), record(2, "skipped")))
    assert sorted(plan.judged) == [1, 3]
    assert sum(reused for _, _, reused in seen) == 2
    assert [one["status"] for one in records] == ["scored", "scored", "skipped", "scored"]


async def test_model_fault_affects_only_one_step():
    faults: dict[int, Exception] = {1: LLMUnavailable("away"), 2: LLMRejected("too long")}
    records, _ = await run(CountingRun(4, faults))
    assert [one["status"] for one in records] == ["scored", "not_judged", "not_judged", "scored"]


async def test_endpoint_rejection_stops_the_run_and_keeps_judged_steps():
    journal = MemoryJournal()
    refusal = LLMRejected("wrong key", status=401, scope=RejectionScope.ENDPOINT)
    with pytest.raises(LLMRejected, match="wrong key"):
        await run(CountingRun(50, {7: refusal}), journal, max_concurrent=1)
    assert [one["position"] for one in journal.records] == list(range(7))


async def test_cancelled_run_leaves_no_task_running():
    plan = CountingRun(10_000)
    running = asyncio.create_task(run(plan))
    while len(plan.judged) < 5:  # noqa: ASYNC110 - a counter of the plan's own
        await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == {asyncio.current_task()}
