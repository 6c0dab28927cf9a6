"""Carries out one job: claim, judge, store. The border at which everything that can go wrong gets a name."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

import structlog

from answers.submission import Answer
from app.clock import Clock, Ids
from app.errors import UnknownTask, code_of
from app.jobs.errors import BudgetReached, JobSuperseded
from app.jobs.following import ProgressWriter
from app.jobs.pausing import Pausing
from app.jobs.takeover import Takeover
from app.observability.metrics import Metrics
from app.observability.redaction import Redactor
from app.progress import Progress, Report
from app.storage import jobs as rows
from app.storage.checkpoints import count_checkpoints, forget_checkpoints
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.records import Job, JobError, JobKind, NewResult
from app.storage.results import insert_result
from app.storage.storable import storable
from cache.errors import BrowserUnavailable
from judges.errors import JudgeBug, LLMRejected, ModelNotConfigured, ScriptStopped
from judges.suites.errors import SuiteError

T = TypeVar("T")
_PATIENCE_S = 60.0
_AT_DATABASE = 6
"""How many attempts may be at the database at once: a thousand that begin together wait here and not there."""
_log = structlog.get_logger(__name__)


class Evaluate(Protocol):
    """Judges one answer: ``app.engine.pipeline.evaluate`` with everything but the job filled in."""

    def __call__(
        self, job: Job, answer: Answer, *, result_id: str, progress: Report
    ) -> Coroutine[Any, Any, dict[str, Any]]: ...


class JobExecution:
    """``run`` is what a worker does with a queue entry."""

    def __init__(
        self,
        database: Database,
        takeover: Takeover,
        pausing: Pausing,
        evaluate: Evaluate,
        *,
        clock: Clock,
        ids: Ids,
        redactor: Redactor,
        metrics: Metrics,
        deadline_s: float,
        suite_deadline_s: float | None = None,
    ) -> None:
        self._database = database
        self._takeover = takeover
        self._pausing = pausing
        self._evaluate = evaluate
        self._clock = clock
        self._ids = ids
        self._redactor = redactor
        self._under_way: dict[str, asyncio.Task[str]] = {}
        """By job, the attempt that stands for it here."""
        self._superseded: set[asyncio.Task[str]] = set()
        self._turn = asyncio.Semaphore(_AT_DATABASE)
        self._metrics = metrics
        self._deadlines_s = {JobKind.ANSWER: deadline_s, JobKind.SUITE: suite_deadline_s or deadline_s}

    def interrupt(self) -> None:
        """End every attempt under way now; each hands its job back."""
        for attempt in self._under_way.values():
            attempt.cancel()

    async def run(self, job_id: str, queue_id: int) -> None:
        """Make the next attempt at a job, if this entry still stands for it.

        Raises:
            DatabaseUnavailable: the claim or the end could not be written; the entry's loss is noticed by the sweep.
        """
        async with self._turn, self._database.begin() as connection:
            job = await rows.claim(connection, job_id, queue_id, now=self._clock.now())
            text = "" if job is None else await rows.answer_text(connection, job.answer_sha256)
        if job is None:
            return
        answer = Answer(name=job.answer_name, text=text)
        with structlog.contextvars.bound_contextvars(job_id=job.id, attempt=job.attempts, answer=job.answer_name):
            _log.info("job started", agent=job.agent, task_id=job.task_id)
            started = time.monotonic()
            older = self._under_way.get(job.id)
            attempt = asyncio.create_task(self._attempt(job, answer, older), name=f"attempt at {job.id}")
            self._under_way[job.id] = attempt
            try:
                outcome = await attempt
            except asyncio.CancelledError:
                attempt.cancel()
                await asyncio.wait({attempt})
                if attempt not in self._superseded or _is_called_off():
                    raise
                outcome = "superseded"
            finally:
                self._superseded.discard(attempt)
                if self._under_way.get(job.id) is attempt:
                    del self._under_way[job.id]
            self._metrics.attempts.labels(outcome).inc()
            _log.info("job attempt ended", outcome=outcome, seconds=round(time.monotonic() - started, 3))

    async def _attempt(self, job: Job, answer: Answer, older: asyncio.Task[str] | None) -> str:
        """Judge and store; returns in one word how it ended. ``older``: one that still runs here for the same job."""
        writer = ProgressWriter(self._database, job.fence, turn=self._turn)
        started = time.monotonic()
        deadline = asyncio.timeout(self._deadlines_s[job.kind])
        result_id = self._ids.new("res")
        try:
            if older is not None:
                await self._supersede(older)
            async with deadline:
                work = self._evaluate(job, answer, result_id=result_id, progress=writer.report)
                result = await writer.run_beside(work)
            await self._insistently(lambda: self._store(job, result_id, result, writer.latest))
        except asyncio.CancelledError:
            # Stopped by its owner, or with the whole worker: the row tells which.
            await self._let_go(job)
            raise
        except JobSuperseded:
            return "superseded"
        except DatabaseUnavailable as error:
            _log.warning("job handed back", detail=str(error))
            await self._insistently(lambda: self._takeover.hand_back(job.fence))
            return "handed_back"
        except (LLMRejected, ModelNotConfigured) as error:
            refusal, detail = error, self._redactor.redact(str(error))
            await self._insistently(lambda: self._pausing.pause(job.fence, refusal, detail))
            return "paused"
        except BudgetReached as error:
            reached = error
            await self._insistently(lambda: self._pause_for_money(job, result_id, reached))
            return "paused"
        except Exception as error:  # noqa: BLE001 - the job worker is one of the two borders (docs: house style)
            failure = self._late(job) if deadline.expired() else self._named(error)
            _log.warning("job failed", code=failure.code, exc_info=failure.code == "INTERNAL")
            await self._insistently(lambda: self._fail(job, failure))
            return "failed"
        self._metrics.count_result(result, time.monotonic() - started)
        return "succeeded"

    async def _supersede(self, older: asyncio.Task[str]) -> None:
        """End an attempt whose job was taken from a worker that only slept, and given back to it.

        Nothing it comes to counts any more. Left to itself until it notices, it would go on asking models, and its
        requests be joined with those of the attempt that counts: replies without their cost.
        """
        self._superseded.add(older)
        older.cancel()
        await asyncio.wait({older})

    async def _let_go(self, job: Job) -> None:
        try:
            await self._takeover.hand_back(job.fence)
        except DatabaseUnavailable as error:
            _log.warning("job not handed back, the sweep will find it", detail=str(error))

    async def _store(self, job: Job, result_id: str, result: dict[str, Any], progress: Progress) -> None:
        """The result and the job's end, together or not at all.

        Raises:
            JobSuperseded: the fence has fallen; nothing was stored.
        """
        row = _row(result_id, result)
        now = self._clock.now()
        async with self._turn, self._database.begin() as connection:
            ended = await rows.succeed(connection, job.fence, result_id=result_id, progress=progress, now=now)
            if ended is None:
                present = await rows.get_job(connection, job.id)
                if present is None or present.result_id != result_id:
                    raise JobSuperseded(job.id)
                return  # our own earlier try went through, only its confirmation was lost
            await insert_result(connection, ended, row, now=now)
            if row.status == "complete":
                await forget_checkpoints(connection, job.id)
            else:
                await count_checkpoints(connection, job.id)

    async def _pause_for_money(self, job: Job, result_id: str, reached: BudgetReached) -> None:
        row = None if reached.result is None else _row(result_id, reached.result)
        await self._pausing.pause_for_money(job.fence, reached, row, self._clock.now())

    async def _fail(self, job: Job, error: JobError) -> None:
        async with self._database.begin() as connection:
            await rows.fail(connection, job.fence, error, now=self._clock.now())

    async def _insistently(self, write: Callable[[], Awaitable[T]]) -> T:
        """Repeat a write while the database is away, for a limited time."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return await write()
            except DatabaseUnavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(1.0)

    def _late(self, job: Job) -> JobError:
        return JobError(code="DEADLINE", detail=f"not done within {self._deadlines_s[job.kind]:g} s")

    def _named(self, error: Exception) -> JobError:
        """What a job's owner is told about its failure."""
        detail = self._redactor.redact(str(error)) or type(error).__name__
        match error:
            case ScriptStopped():
                return JobError(code=code_of(error), detail=detail, traceback=self._redactor.redact(error.traceback))
            case JudgeBug():
                return JobError(code="JUDGE_BUG", detail=detail, traceback=self._redactor.redact(error.traceback))
            case UnknownTask():
                return JobError(code="UNKNOWN_TASK", detail=detail)
            case BrowserUnavailable():
                return JobError(code="BROWSER_UNAVAILABLE", detail=detail)
            case SuiteError():
                return JobError(code="SUITE_DATA", detail=detail)
            case _:
                return JobError(code="INTERNAL", detail=f"{type(error).__name__}: {detail}")


def _is_called_off() -> bool:
    """Whether it is the current task itself that was cancelled, and not only one that it waits for."""
    this = asyncio.current_task()
    return this is not None and this.cancelling() > 0


def _row(result_id: str, result: dict[str, Any]) -> NewResult:
    return NewResult(
        id=result_id,
        status=str(result["status"]),
        final_score=float(result["final_score"]),
        body=storable(json.dumps(result, allow_nan=False, ensure_ascii=False)),
        page_ids=tuple(page["page_id"] for page in result["pages"] if page["page_id"] is not None),
    )
