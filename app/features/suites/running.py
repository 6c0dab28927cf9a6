"""The loop of every suite: steps streamed from the data, asked side by side, journalled one by one.

What is journalled is never asked again: a run that is killed goes on where it was. A model's fault makes one step
``not_judged``; a refusal of every request (a wrong key) ends the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from app.errors import AppError
from app.exceptions import first_of
from app.features.suites.records import Record, is_settled, without_trace
from judges.errors import JudgeError, LLMError, LLMRejected, ModelNotConfigured
from judges.llm.client import LLMClient, LLMReply, LLMRequest
from judges.llm.refusals import refuses_everything

S_contra = TypeVar("S_contra", contravariant=True)
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who is asked: a client and the bare name of a model."""

    client: LLMClient
    model: str

    @classmethod
    def nobody(cls) -> Asking:
        """For a plan that asks nobody."""
        return cls(client=_Nobody(), model="")


class _Nobody:
    async def complete(self, request: LLMRequest) -> LLMReply:
        raise ModelNotConfigured("this run asks no model")

    async def aclose(self) -> None:
        """Nothing was opened."""


class Plan(Protocol[S]):
    """A suite on its data, with its options. Everything but ``judge`` blocks and is called in a thread."""

    @property
    def total(self) -> int:
        """How many steps ``steps`` will yield."""
        ...

    def steps(self) -> Iterator[S]:
        """The steps to judge, in the data's order, one at a time."""
        ...

    def step_id(self, step: S) -> str: ...

    async def judge(self, step: S, asking: Asking) -> Record:
        """Ask, if the plan asks, and score. Raises LLMError where a model did not answer."""
        ...

    def not_judged(self, step: S, error: LLMError) -> Record: ...


class Journal(Protocol):
    """Where records are kept as they come."""

    async def known(self) -> Mapping[str, dict[str, Any]]:
        """What is kept already, by step id and without traces."""
        ...

    async def keep(self, record: Record) -> None:
        """Returns once it would survive a crash."""
        ...


class StepWatcher(Protocol):
    """Told of each step as it ends; ``reused`` ones were journalled before."""

    def step(self, record: Record, *, done: int, total: int, reused: bool) -> None: ...


@dataclass(slots=True)
class _Run:
    total: int
    watcher: StepWatcher
    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, record: Record, *, reused: bool = False) -> None:
        self.records.append(without_trace(record))
        self.watcher.step(record, done=len(self.records), total=self.total, reused=reused)


async def run_steps(
    plan: Plan[S], journal: Journal, asking: Asking, *, side_by_side: int, watcher: StepWatcher
) -> list[dict[str, Any]]:
    """Judge every step that is not settled; returns all records without traces, by position.

    Raises:
        LLMRejected: the provider refuses whatever it is asked; what was judged before is journalled.
        SuiteError: the data are damaged.
    """
    known = await journal.known()
    run = _Run(total=plan.total, watcher=watcher)
    slots = asyncio.Semaphore(side_by_side)

    async def one(step: S) -> None:
        try:
            record = await _judged(plan, step, asking)
            await journal.keep(record)
            run.add(record)
        finally:
            slots.release()

    steps = await asyncio.to_thread(lambda: iter(plan.steps()))
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                await slots.acquire()  # before the next step is read, so that few are in memory
                step = await asyncio.to_thread(next, steps, None)
                if step is None:
                    break
                before = known.get(plan.step_id(step))
                if before is not None and is_settled(before):
                    run.add(before, reused=True)
                    slots.release()
                    continue
                group.create_task(one(step))
    except* (JudgeError, AppError) as errors:
        failed = first_of(errors)
    if failed is not None:
        raise failed
    return sorted(run.records, key=lambda record: record["position"])


async def _judged(plan: Plan[S], step: S, asking: Asking) -> Record:
    try:
        return await plan.judge(step, asking)
    except LLMRejected as error:
        if refuses_everything(error):
            raise
        return plan.not_judged(step, error)
    except LLMError as error:
        return plan.not_judged(step, error)
