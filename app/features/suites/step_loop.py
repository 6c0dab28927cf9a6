"""Main loop of all suites: stream steps from the data, judge them concurrently and journal each one.

Steps in the journal are not judged again, so a killed run can resume. An error of the model makes a single step
``not_judged``. If the provider refuses every request (for example, an invalid API key), the run ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from app.async_tools import first_exception
from app.engine.model_clients import Limits, ModelClients, folder_reply_cache
from app.errors import AppError
from app.features.suites.records import Record, is_final, without_trace
from app.settings import Settings
from judges.errors import JudgeError, LLMError, LLMRejected
from judges.llm.client import LLMClient, UnconfiguredLLM
from judges.llm.observed import rejects_all_requests

S_contra = TypeVar("S_contra", contravariant=True)
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteModel:
    """Client and model name for the requests of a run."""

    client: LLMClient
    model: str

    @classmethod
    def without_model(cls) -> SuiteModel:
        """Return a value for plans that ask no model."""
        return cls(client=UnconfiguredLLM(), model="")


class Plan(Protocol[S]):
    """Suite with data and options. All methods except ``judge`` block and are called in a thread."""

    @property
    def total(self) -> int:
        """Number of steps that ``steps`` yields."""
        ...

    def steps(self) -> Iterator[S]:
        """Yield the steps to judge in data order."""
        ...

    def step_id(self, step: S) -> str: ...

    async def judge(self, step: S, suite_model: SuiteModel) -> Record:
        """Ask the model, if the plan uses one, and score the step. Raises LLMError if the model does not answer."""
        ...

    def not_judged(self, step: S, error: LLMError) -> Record: ...


class Journal(Protocol):
    """Storage for records."""

    async def stored_records(self) -> Mapping[str, dict[str, Any]]:
        """Return the stored records without traces, by step id."""
        ...

    async def store(self, record: Record) -> None:
        """Store a record durably."""
        ...


class OnStep(Protocol):
    """Called after each finished step. ``reused`` steps were journalled by an earlier run."""

    def __call__(self, record: Record, /, *, done: int, total: int, reused: bool) -> None: ...


@dataclass(slots=True)
class _RunRecords:
    total: int
    on_step: OnStep | None
    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, record: Record, *, reused: bool = False) -> None:
        self.records.append(without_trace(record))
        if self.on_step is not None:
            self.on_step(record, done=len(self.records), total=self.total, reused=reused)


async def run_steps(
    plan: Plan[S], journal: Journal, suite_model: SuiteModel, *, max_concurrent: int, on_step: OnStep | None = None
) -> list[dict[str, Any]]:
    """Judge every step without a final record. Return all records without traces, by position.

    Raises:
        LLMRejected: the provider refuses every request. Steps judged before are journalled.
        SuiteError: the data are damaged.
    """
    known = await journal.stored_records()
    run = _RunRecords(total=plan.total, on_step=on_step)
    free_slots = asyncio.Semaphore(max_concurrent)
    rejections: list[LLMRejected] = []

    async def judge_and_store(step: S) -> None:
        try:
            record = await _judge_step(plan, step, suite_model)
            await journal.store(record)
            run.add(record)
        except LLMRejected as error:
            # No further step begins. Begun ones are judged: one may be the probe that closes the circuit breaker.
            rejections.append(error)
        finally:
            free_slots.release()

    steps = await asyncio.to_thread(lambda: iter(plan.steps()))
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                await free_slots.acquire()  # before reading the next step, to bound the number of steps in memory
                step = await asyncio.to_thread(next, steps, None)
                if step is None or rejections:
                    break
                before = known.get(plan.step_id(step))
                if before is not None and is_final(before):
                    run.add(before, reused=True)
                    free_slots.release()
                    continue
                group.create_task(judge_and_store(step))
    except* (JudgeError, AppError) as errors:
        failed = first_exception(errors)
    if failed is not None or rejections:
        raise failed or rejections[0]
    return sorted(run.records, key=lambda record: record["position"])


async def _judge_step(plan: Plan[S], step: S, suite_model: SuiteModel) -> Record:
    try:
        return await plan.judge(step, suite_model)
    except LLMRejected as error:
        if rejects_all_requests(error):
            raise
        return plan.not_judged(step, error)
    except LLMError as error:
        return plan.not_judged(step, error)


@asynccontextmanager
async def open_suite_model(settings: Settings) -> AsyncIterator[SuiteModel]:
    """Open a client for the configured model, with the same limits, retries, budget and reply cache as for judges.

    Raises:
        ModelNotConfigured: the provider does not exist or its API key is missing.
    """
    models = ModelClients(settings, Limits.from_settings(settings), folder_reply_cache(settings))
    try:
        yield _model_for(models, settings.model)
    finally:
        await models.aclose()


def _model_for(models: ModelClients, model: str) -> SuiteModel:
    """Return the client of a model.

    Raises:
        ModelNotConfigured: the provider does not exist or its API key is missing.
    """
    client, name = models.client(model)
    return SuiteModel(client=client, model=name)
