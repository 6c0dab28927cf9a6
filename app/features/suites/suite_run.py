"""Run of a suite, and the loop of all runs: stream steps from the data, judge them concurrently and journal each one.

The command line and the service share both. Steps in the journal are not judged again, so a killed run can resume. An
error of the model makes a single step ``not_judged``. If the provider refuses every request (for example, an invalid
API key), the run ends.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from app.async_tools import first_exception
from app.engine.model_clients import Limits, ModelClients, folder_reply_cache
from app.errors import AppError
from app.features.suites.boxes import Box
from app.features.suites.records import Record, StepStatus, not_judged_summary, total_usage, without_trace
from app.features.suites.run_options import SuiteName, SuiteRunIn
from app.settings import Settings
from judges.errors import JudgeError, LLMError, LLMRejected
from judges.llm.client import LLMClient, LLMRequest, Message, UnconfiguredLLM
from judges.llm.observed import rejects_all_requests
from judges.llm.providers import parse_model
from judges.suites.questions import Questions, ask_all, reply_or_empty, request_params
from rubrics.verdict import Usage

S = TypeVar("S")
T = TypeVar("T")
Resolve: TypeAlias = Callable[[str], Path]
"""Returns the path of a file or folder in the options. Raises PathNotAllowed if the caller may not read it."""
_MAX_UNKNOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteModel:
    """Client and model name for the requests of a run."""

    client: LLMClient
    model: str

    @classmethod
    def without_model(cls) -> SuiteModel:
        """Return a value for runs that ask no model."""
        return cls(client=UnconfiguredLLM(), model="")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """Data of a step: the page text around the options, the original screenshot, and the boxes of elements on it."""

    page: str
    screenshot: bytes | None
    boxes: tuple[Box, ...]


class SuiteRun(ABC, Generic[S]):
    """Run of a suite over data that were read and validated, so that damage is found before any cost.

    All methods except ``judge`` and ``ask`` block and are called in a thread.

    ``model`` is ``provider/model``, or None if the answers of a file are scored. ``total`` is the number of steps.
    """

    name: ClassVar[SuiteName]
    options_class: ClassVar[type[SuiteRunIn]]
    prompt: str | None = None
    """Reference of the prompt template, if the suite has one."""

    def __init__(self, options: SuiteRunIn, settings: Settings, *, total: int, max_tokens: int) -> None:
        self.options = options
        self.model = None if options.predictions else options.model or settings.model
        self.total = total
        self._max_tokens = max_tokens

    @abstractmethod
    def steps(self) -> Iterator[S]:
        """Yield the steps to judge in data order."""

    @abstractmethod
    def step_id(self, step: S) -> str: ...

    @abstractmethod
    async def judge(self, step: S, suite_model: SuiteModel) -> Record:
        """Ask the model, if the run uses one, and score the step. Raises LLMError if the model does not answer."""

    @abstractmethod
    def not_judged(self, step: S, reason: str, detail: str, usage: Usage | None = None) -> Record:
        """Return the record of a step that could not be judged."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return the values that must be equal for the steps of an earlier run to be reused."""

    @abstractmethod
    def unknown_ids(self, records: Sequence[Record]) -> list[str]:
        """Return the ids of answers in the file to steps that are not in the data."""

    @abstractmethod
    def own_figures(self, records: Sequence[Record]) -> dict[str, Any]:
        """Return the figures of the suite, and the options that determine them."""

    @abstractmethod
    def describe(self) -> Iterator[str]:
        """Yield lines about the data for the terminal."""

    @classmethod
    @abstractmethod
    def step_view(cls, options: Any, resolve: Resolve, record: Record) -> StepView:
        """Return a step of a run that has been judged, from its record and the data.

        Raises:
            SuiteError: the data are missing or damaged, or differ from those of the run.
            PathNotAllowed: a path is outside the allowed folders.
        """

    def figures(self, records: Sequence[Record]) -> dict[str, Any]:
        """Return the figures of the run with its options and data."""
        missing, unknown = not_judged_summary(records), self.unknown_ids(records)
        return {
            "suite": self.name.value,
            "status": "incomplete" if missing["count"] else "complete",
            "model": self.model,
            "params": None if self.model is None else dict(self._params(parse_model(self.model).model)),
            "split": self.options.split,
            "seed": self.options.seed,
            "max_examples": self.options.max_examples,
            "n_steps": len(records),
            **self.own_figures(records),
            "not_judged": missing,
            "unknown_ids": unknown[:_MAX_UNKNOWN],
            "unknown_count": len(unknown),
            "usage": total_usage(records),
        }

    def write_more(self, folder: Path, metrics: Mapping[str, Any], records: Iterator[Record]) -> None:
        """Write further files of the suite. Raises AppError."""

    async def ask(
        self, questions: Questions[T], suite_model: SuiteModel, metadata: Mapping[str, str]
    ) -> tuple[T, Usage]:
        """Answer the questions of a step with the model. Raises LLMError."""

        async def reply(messages: tuple[Message, ...]) -> tuple[str, Usage]:
            request = LLMRequest(
                model=suite_model.model,
                messages=messages,
                prompt=self.prompt,
                params=self._params(suite_model.model),
                metadata=metadata,
            )
            return await reply_or_empty(suite_model.client, request)

        return await ask_all(questions, reply)

    def _params(self, model: str) -> Mapping[str, Any]:
        temperature = getattr(self.options, "temperature", 0.0)
        return request_params(model, max_tokens=self._max_tokens, temperature=temperature)


def tool_version() -> str:
    return version("assay")


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


async def run_steps(
    run: SuiteRun[S],
    journal: Journal,
    suite_model: SuiteModel,
    *,
    max_concurrent: int,
    on_step: OnStep,
) -> list[dict[str, Any]]:
    """Judge every step without a final record. Return all records without traces, by position.

    Raises:
        LLMRejected: the provider refuses every request. Steps judged before are journalled.
        SuiteError: the data are damaged.
    """
    known = await journal.stored_records()
    records: list[dict[str, Any]] = []
    free_slots = asyncio.Semaphore(max_concurrent)
    rejections: list[LLMRejected] = []

    def finish(record: Record, *, reused: bool = False) -> None:
        records.append(without_trace(record))
        on_step(record, done=len(records), total=run.total, reused=reused)

    async def judge_and_store(step: S) -> None:
        try:
            record = await _judge_step(run, step, suite_model)
            await journal.store(record)
            finish(record)
        except LLMRejected as error:
            # No further step begins. Begun ones are judged: one may be the probe that closes the circuit breaker.
            rejections.append(error)
        finally:
            free_slots.release()

    steps = await asyncio.to_thread(lambda: iter(run.steps()))
    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            while True:
                await free_slots.acquire()  # before reading the next step, to bound the number of steps in memory
                step = await asyncio.to_thread(next, steps, None)
                if step is None or rejections:
                    break
                before = known.get(run.step_id(step))
                if before is not None and before["status"] != StepStatus.NOT_JUDGED:
                    finish(before, reused=True)
                    free_slots.release()
                    continue
                group.create_task(judge_and_store(step))
    except* (JudgeError, AppError) as errors:
        failed = first_exception(errors)
    if failed is not None or rejections:
        raise failed or rejections[0]
    return sorted(records, key=lambda record: record["position"])


async def _judge_step(run: SuiteRun[S], step: S, suite_model: SuiteModel) -> Record:
    try:
        return await run.judge(step, suite_model)
    except LLMError as error:
        if isinstance(error, LLMRejected) and rejects_all_requests(error):
            raise
        return run.not_judged(step, str(error.reason or "llm_unavailable"), str(error), error.usage)


@asynccontextmanager
async def open_suite_model(settings: Settings) -> AsyncIterator[SuiteModel]:
    """Open a client for the configured model, with the same limits, retries, budget and reply cache as for judges.

    Raises:
        ModelNotConfigured: the provider does not exist or its API key is missing.
    """
    models = ModelClients(settings, Limits.from_settings(settings), folder_reply_cache(settings))
    try:
        client, name = models.client(settings.model)
        yield SuiteModel(client=client, model=name)
    finally:
        await models.aclose()
