"""Execution of one job: claim, judge, store the result. Every error is mapped to a job error code here.

Jobs whose worker was lost are taken over. A killed worker leaves queue entries behind that are marked as running. All
live workers sweep for them, one at a time. The job gets a new queue entry, and with it a new fencing token. If the old
worker was only suspended, its later writes are rejected.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import structlog
from sqlalchemy import text

from answers.submission import Answer
from app.async_tools import cancellable_sleep
from app.clock import Clock, IdGenerator
from app.errors import InputRejected, UnknownTask, script_error
from app.jobs.errors import JobBudgetExhausted, JobSuperseded
from app.jobs.pausing import JobPauser
from app.jobs.queue import JobQueue
from app.observability.logs import Redactor
from app.observability.metrics import Metrics
from app.progress import NO_PROGRESS, Progress, ProgressCallback
from app.storage import jobs as rows
from app.storage.budgets import delete_checkpoints, mark_checkpoints_counted
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.jobs import write_progress
from app.storage.records import Fence, Job, JobError, JobStatus, NewResult, storable_text
from app.storage.results import insert_result
from cache.errors import BrowserUnavailable
from judges.errors import (
    IsolationFailed,
    JudgeBug,
    LLMError,
    LLMRejected,
    ModelNotConfigured,
    ScriptStopped,
    missing_extra,
)
from judges.suites.errors import SuiteError

ATTEMPTS_EXHAUSTED = "ATTEMPTS_EXHAUSTED"
_LOCK = 0x73776565  # "swee"
_SWEEPS_PER_S = 4
"""Sweeps of all workers together, if there are so many that they would sweep more often."""
_MAX_INTERVALS = 5
"""Maximum time between two sweeps of a worker, in times without a heartbeat after which a worker is lost."""
_log = structlog.get_logger(__name__)


class Takeover:
    """Sweep for jobs of lost workers. They are queued again, or fail after too many attempts."""

    def __init__(self, database: Database, queue: JobQueue, *, clock: Clock, stalled_s: float) -> None:
        self._database = database
        self._queue = queue
        self._clock = clock
        self._stalled_s = stalled_s
        self._workers = 1

    @property
    def interval_s(self) -> float:
        """Time between two sweeps of this worker. It grows with the number of workers that were seen last."""
        return max(min(1.0, self._stalled_s / 4), min(_MAX_INTERVALS * self._stalled_s, self._workers / _SWEEPS_PER_S))

    async def sweep(self) -> int:
        """Run one sweep. Return the number of jobs that were queued again or failed.

        Raises:
            DatabaseUnavailable: The database cannot be reached.
        """
        async with self._database.begin() as lock_connection:
            query = "SELECT pg_try_advisory_xact_lock(:key), (SELECT count(*) FROM procrastinate_workers)"
            locked, self._workers = (await lock_connection.execute(text(query), {"key": _LOCK})).one()
            if not locked:
                return 0
            count = 0
            for queue_id in await self._queue.stalled(self._stalled_s):
                async with self._database.begin() as connection:
                    abandoned = await rows.jobs_of_entries(connection, [queue_id])
                for job in abandoned:
                    count += await self._take_over(job)
                await self._queue.close(queue_id)
            async with self._database.begin() as connection:
                orphans = await rows.jobs_without_entry(connection)
            for job in orphans:
                count += await self._take_over(job)
            return count

    async def return_to_queue(self, fence: Fence) -> bool:
        """Return a running job to the queue. The attempt does not count.

        Return False if the fencing token is no longer valid.
        """
        async with self._database.begin() as connection:
            job = await rows.get_job(connection, fence.job_id, lock=True)
            if job is None or job.fence != fence or job.has_ended:
                return False
            [queue_id] = await self._queue.enqueue(connection, [job.id], priority=job.priority)
            return await rows.requeue(connection, fence, queue_id=queue_id, extra_attempts=1)

    async def try_again(self, job: Job, problem: str) -> str:
        """Queue a job again after a fault of its worker, or fail it after too many attempts. Return the outcome."""
        if await self._take_over(job, f"{problem} (attempt {job.attempts})"):
            return "failed" if job.attempts >= job.attempts_allowed else "handed_back"
        return "superseded"

    async def _take_over(self, abandoned: Job, problem: str | None = None) -> bool:
        """``problem``: why the last of too many attempts failed; None: its worker was lost."""
        async with self._database.begin() as connection:
            job = await rows.get_job(connection, abandoned.id, lock=True)
            if job is None or job.fence != abandoned.fence or job.has_ended:
                return False
            if job.status is JobStatus.RUNNING and job.attempts >= job.attempts_allowed:
                detail = problem or f"The worker was lost in each of {job.attempts} attempts"
                error = JobError(code=ATTEMPTS_EXHAUSTED, detail=detail)
                _log.warning("job failed, attempts exhausted", job_id=job.id, attempts=job.attempts)
                return await rows.fail(connection, job.fence, error, now=self._clock.now())
            [queue_id] = await self._queue.enqueue(connection, [job.id], priority=job.priority)
            _log.warning("job taken over", job_id=job.id, attempt=job.attempts)
            return await rows.requeue(connection, job.fence, queue_id=queue_id)


_INTERVAL_S = 0.25
_CHECK_S = 5.0


class ProgressWriter:
    """Progress writer for one job attempt. ``report`` is cheap; the database is written every ``interval_s``."""

    def __init__(
        self,
        database: Database,
        fence: Fence,
        *,
        interval_s: float = _INTERVAL_S,
        limiter: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        """``limiter`` is entered for each write, to limit concurrent database access."""
        self._limiter = limiter or nullcontext()
        self._database = database
        self._fence = fence
        self._interval_s = interval_s
        self.latest = NO_PROGRESS
        """The last progress reported."""
        self._reported = asyncio.Event()

    def report(self, progress: Progress) -> None:
        self.latest = progress
        self._reported.set()

    async def run_with(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` and write its progress until it ends.

        Raises:
            JobSuperseded: The job was cancelled or taken over. ``work`` has been cancelled.
        """
        working = asyncio.ensure_future(work)
        writing = asyncio.ensure_future(self._write())
        futures: set[asyncio.Future[Any]] = {working, writing}
        try:
            done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if working not in done:
                writing.result()
            return working.result()
        finally:
            for task in futures:
                task.cancel()
            await asyncio.wait(futures)

    async def _write(self) -> None:
        """Write progress until cancelled. Without progress, check the fencing token every ``_CHECK_S``."""
        while True:
            try:
                async with asyncio.timeout(_CHECK_S):
                    await self._reported.wait()
            except TimeoutError:
                pass
            async with self._limiter:
                self._reported.clear()
                await self._write_once(self.latest)
            await cancellable_sleep(self._interval_s)

    async def _write_once(self, progress: Progress) -> None:
        try:
            async with self._database.begin() as connection:
                has_lease = await write_progress(connection, self._fence, progress)
        except DatabaseUnavailable as error:
            # Progress is optional. Only writes of the final state are retried.
            _log.warning("progress not written", job_id=self._fence.job_id, detail=str(error))
            return
        if not has_lease:
            raise JobSuperseded(self._fence.job_id)


T = TypeVar("T")
_RETRY_FOR_S = 60.0
_MAX_DATABASE_ACCESS = 6
"""Maximum number of attempts that use the database at once. The others wait here, not for a pooled connection."""


class EvaluateJob(Protocol):
    """Function that runs one job: ``app.engine.pipeline.evaluate`` with all other arguments bound."""

    def __call__(
        self, job: Job, answer: Answer, *, result_id: str, progress: ProgressCallback
    ) -> Coroutine[Any, Any, dict[str, Any]]: ...


class JobExecutor:
    """Executor of jobs. A worker calls ``run`` for each queue entry."""

    def __init__(
        self,
        database: Database,
        takeover: Takeover,
        pausing: JobPauser,
        evaluate: EvaluateJob,
        *,
        clock: Clock,
        ids: IdGenerator,
        redactor: Redactor,
        metrics: Metrics,
        deadline_s: float,
        deadlines: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """``deadlines`` replaces ``deadline_s``, in seconds, for the job kinds that it names."""
        self._database = database
        self._takeover = takeover
        self._pausing = pausing
        self._evaluate = evaluate
        self._clock = clock
        self._ids = ids
        self._redactor = redactor
        self._running: dict[str, asyncio.Task[str]] = {}
        """The current attempt in this process, by job ID."""
        self._superseded: set[asyncio.Task[str]] = set()
        self._database_access = asyncio.Semaphore(_MAX_DATABASE_ACCESS)
        self._metrics = metrics
        self._default_deadline_s = deadline_s
        self._deadlines = deadlines

    def cancel_all(self) -> None:
        """Cancel all running attempts. Each returns its job to the queue."""
        for attempt in self._running.values():
            attempt.cancel()

    async def run(self, job_id: str, queue_id: int) -> None:
        """Run the next attempt of a job. Do nothing if the queue entry is outdated.

        Raises:
            DatabaseUnavailable: The claim or the outcome could not be written. The takeover sweep will find the job.
        """
        claiming = asyncio.create_task(self._claim(job_id, queue_id), name=f"claim of {job_id}")
        try:
            job, text = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The claim may be committed already. It ends by itself, and the attempt must not count.
            await asyncio.wait({claiming})
            if claiming.exception() is None and (claimed := claiming.result()[0]) is not None:
                await self._return_to_queue(claimed)
            raise
        if job is None:
            return
        answer = Answer(name=job.answer_name, text=text)
        with structlog.contextvars.bound_contextvars(job_id=job.id, attempt=job.attempts, answer=job.answer_name):
            _log.info("job started", agent=job.agent, task_id=job.task_id)
            started = time.monotonic()
            older = self._running.get(job.id)
            attempt = asyncio.create_task(self._attempt(job, answer, older), name=f"attempt at {job.id}")
            self._running[job.id] = attempt
            try:
                outcome = await attempt
            except asyncio.CancelledError:
                attempt.cancel()
                await asyncio.wait({attempt})
                if attempt not in self._superseded or _is_cancelled():
                    await self._return_to_queue(job)  # an attempt that was cancelled before it began did not do so
                    raise
                outcome = "superseded"
            finally:
                self._superseded.discard(attempt)
                if self._running.get(job.id) is attempt:
                    del self._running[job.id]
            self._metrics.attempts.labels(outcome).inc()
            _log.info("job attempt ended", outcome=outcome, seconds=round(time.monotonic() - started, 3))

    async def _claim(self, job_id: str, queue_id: int) -> tuple[Job | None, str]:
        """Start the next attempt of a job. Return the job, None if the queue entry is outdated, and its answer."""
        async with self._database_access, self._database.begin() as connection:
            job = await rows.claim(connection, job_id, queue_id, now=self._clock.now())
            return job, "" if job is None else await rows.answer_text(connection, job.answer_sha256)

    async def _attempt(self, job: Job, answer: Answer, older: asyncio.Task[str] | None) -> str:
        """Judge the answer and store the result. Return the outcome for metrics, such as ``succeeded``.

        ``older`` is an attempt for the same job that still runs in this process.
        """
        writer = ProgressWriter(self._database, job.fence, limiter=self._database_access)
        started = time.monotonic()
        deadline = asyncio.timeout(self._deadline_s(job))
        result_id = self._ids.new("res")
        try:
            if older is not None:
                await self._supersede(older)
            async with deadline:
                work = self._evaluate(job, answer, result_id=result_id, progress=writer.report)
                result = await writer.run_with(work)
            await self._retry_write(lambda: self._store(job, result_id, result, writer.latest))
        except asyncio.CancelledError:
            # The job was cancelled, or the worker is stopping. ``return_to_queue`` does nothing if the job has ended.
            await self._return_to_queue(job)
            raise
        except JobSuperseded:
            return "superseded"
        except DatabaseUnavailable as error:
            _log.warning("job handed back", detail=str(error))
            await self._retry_write(lambda: self._takeover.return_to_queue(job.fence))
            return "handed_back"
        except (LLMRejected, ModelNotConfigured) as error:
            refusal, detail = error, self._redactor.redact(str(error))
            await self._retry_write(lambda: self._pausing.pause(job.fence, refusal, detail))
            return "paused"
        except IsolationFailed as error:
            problem = f"No process for the task file could be run: {self._redactor.redact(str(error))}"
            return await self._retry_write(lambda: self._takeover.try_again(job, problem))
        except JobBudgetExhausted as error:
            reached = error
            await self._retry_write(lambda: self._pause_for_budget(job, result_id, reached))
            return "paused"
        except Exception as error:  # noqa: BLE001 - every error must become a job error
            failure = self._deadline_error(job) if deadline.expired() else self._job_error(error)
            _log.warning("job failed", code=failure.code, exc_info=failure.code == "INTERNAL")
            await self._retry_write(lambda: self._fail(job, failure))
            return "failed"
        self._metrics.count_result(result, time.monotonic() - started)
        return "succeeded"

    async def _supersede(self, older: asyncio.Task[str]) -> None:
        """Cancel an older attempt in this process after its job was taken over and came back to this worker.

        Its writes are rejected anyway. If it kept running, it would send model requests that the new attempt joins, and
        the new attempt would get those replies without their cost.
        """
        self._superseded.add(older)
        older.cancel()
        await asyncio.wait({older})

    async def _return_to_queue(self, job: Job) -> None:
        try:
            await self._takeover.return_to_queue(job.fence)
        except DatabaseUnavailable as error:
            _log.warning("job not returned to the queue, the takeover sweep will find it", detail=str(error))

    async def _store(self, job: Job, result_id: str, result: dict[str, Any], progress: Progress) -> None:
        """Store the result and the job's final state in one transaction.

        Raises:
            JobSuperseded: The fencing token is no longer valid. Nothing was stored.
        """
        row = await new_result(result_id, result)
        now = self._clock.now()
        async with self._database_access, self._database.begin() as connection:
            ended = await rows.succeed(connection, job.fence, result_id=result_id, progress=progress, now=now)
            if ended is None:
                present = await rows.get_job(connection, job.id)
                if present is None or present.result_id != result_id:
                    raise JobSuperseded(job.id)
                return  # an earlier try was committed, but the connection was lost before the confirmation
            await insert_result(connection, ended, row, now=now)
            if row.status == "complete":
                await delete_checkpoints(connection, job.id)
            else:
                await mark_checkpoints_counted(connection, job.id)

    async def _pause_for_budget(self, job: Job, result_id: str, reached: JobBudgetExhausted) -> None:
        row = None if reached.result is None else await new_result(result_id, reached.result)
        await self._pausing.pause_for_budget(job.fence, reached, row, self._clock.now())

    async def _fail(self, job: Job, error: JobError) -> None:
        async with self._database.begin() as connection:
            await rows.fail(connection, job.fence, error, now=self._clock.now())

    async def _retry_write(self, write: Callable[[], Awaitable[T]]) -> T:
        """Retry ``write`` while the database is unavailable, for at most ``_RETRY_FOR_S``."""
        deadline = time.monotonic() + _RETRY_FOR_S
        while True:
            try:
                return await write()
            except DatabaseUnavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(1.0)

    def _deadline_s(self, job: Job) -> float:
        return self._deadlines.get(job.kind.value, self._default_deadline_s)

    def _deadline_error(self, job: Job) -> JobError:
        remedy = "Retry the job, which reuses the pages and model replies that it has"
        if job.kind.value not in self._deadlines:
            remedy += ", or raise ASSAY_JOB_DEADLINE_S"
        return JobError(code="DEADLINE", detail=f"Not finished within {self._deadline_s(job):g} s. {remedy}")

    def _job_error(self, error: Exception) -> JobError:
        """Map an exception to the job error that the owner sees."""
        detail = self._redactor.redact(str(error)) or type(error).__name__
        match error:
            case ScriptStopped():
                code, message = script_error(error)
                return JobError(
                    code=code, detail=self._redactor.redact(message), traceback=self._redactor.redact(error.traceback)
                )
            case JudgeBug():
                return JobError(code="JUDGE_BUG", detail=detail, traceback=self._redactor.redact(error.traceback))
            case LLMError():
                return JobError(code="LLM_UNAVAILABLE", detail=detail)
            case UnknownTask():
                return JobError(code="UNKNOWN_TASK", detail=detail)
            case InputRejected():
                return JobError(code=error.code, detail=detail)
            case BrowserUnavailable():
                return JobError(code="BROWSER_UNAVAILABLE", detail=detail)
            case SuiteError():
                return JobError(code="SUITE_DATA", detail=detail)
            case ModuleNotFoundError() if (missing := missing_extra(error)) is not None:
                return JobError(code="NOT_INSTALLED", detail=missing)
            case _:
                return JobError(code="INTERNAL", detail=f"{type(error).__name__}: {detail}")


def _is_cancelled() -> bool:
    """Return whether the current task was cancelled, and not only a task that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def new_result(result_id: str, result: dict[str, Any]) -> NewResult:
    """Return the row of a result."""
    final = float(result["final_score"])
    score = result.get("score")
    low, high = (score["low"], score["high"]) if isinstance(score, dict) else (final, final)
    return NewResult(
        id=result_id,
        status=str(result["status"]),
        final_score=final,
        score_low=low,
        score_high=high,
        model=str(result.get("model") or result.get("judge_model") or "unknown"),
        body=await asyncio.to_thread(lambda: storable_text(_encoded(result))),
        page_ids=tuple(dict.fromkeys(_page_ids(result["pages"]))),
    )


def _page_ids(pages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the ids of the captures of pages, and of their other copies."""
    for page in pages:
        copies = (page, page.get("other_copy") or {})
        yield from (copy["page_id"] for copy in copies if copy.get("page_id") is not None)


def _encoded(value: Any, levels: int = 3) -> str:
    """Return JSON. The upper levels are encoded here, because other threads wait for the end of a call of ``json``."""
    encoded = partial(json.dumps, allow_nan=False, ensure_ascii=False)
    if levels and isinstance(value, list):
        return f"[{', '.join(_encoded(each, levels - 1) for each in value)}]"
    if levels and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return f"{{{', '.join(f'{encoded(key)}: {_encoded(each, levels - 1)}' for key, each in value.items())}}}"
    return encoded(value)
