"""Pausing and resuming jobs.

A job is paused while its model provider rejects requests permanently, while no worker has the provider's API key, or
while a budget is spent. A paused job is ``queued`` with the stage ``paused``: no worker takes it, and the attempt does
not count.

Until the provider is known to accept requests again, one job at a time is resumed as a probe. When it succeeds, all
jobs of that model are resumed. A job that waits for budget has an incomplete result in the meantime. It is resumed when
the budget is raised.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.clock import Clock
from app.jobs.errors import JobBudgetExhausted, JobNotFound, JobStateConflict
from app.jobs.queue import JobQueue
from app.storage import jobs as rows
from app.storage.budgets import INSTALLATION_BUDGET, INSTALLATION_TOKEN_BUDGET
from app.storage.database import Database
from app.storage.records import Fence, Job, JobError, JobStatus, NewResult
from app.storage.results import insert_result
from judges.errors import LLMProviderPaused, LLMRejected, ModelNotConfigured
from judges.llm.circuit import CircuitState

LLM_REJECTED = "LLM_REJECTED"
PROVIDER_PAUSED = "PROVIDER_PAUSED"
MODEL_NOT_CONFIGURED = "MODEL_NOT_CONFIGURED"
BUDGET = "BUDGET"
_MAX_RESUMED = 200
"""Maximum number of jobs resumed in one round, per model and for budgets."""
_REJECTED_REMEDY = (
    "The job is paused: fix the key, the account or the access to the model. The job resumes when the service is "
    "restarted with a new key, automatically within a minute or two if the old key works again, or on retry"
)
_NO_SUCH_MODEL_REMEDY = (
    "The job is paused until the provider has this model. It then resumes automatically within a minute or two, or on "
    "retry. To use another model, cancel the job and submit the answer with that model, or set ASSAY_MODEL if the "
    "submission named none"
)
_PROVIDER_PAUSED_REMEDY = "The job is paused: it resumes when the provider is resumed"
_NO_KEY_REMEDY = "The job is paused: it resumes when a worker with the missing setting is started"
_BUDGET_REMEDY = "The job is paused: it resumes when {limit} is raised. Claims judged so far are saved"
_LIMITS = {INSTALLATION_BUDGET: "ASSAY_BUDGET_USD", INSTALLATION_TOKEN_BUDGET: "ASSAY_BUDGET_TOKENS"}
_log = structlog.get_logger(__name__)


async def resume_job(connection: AsyncConnection, queue: JobQueue, job_id: str) -> Job | None:
    """Queue a paused job again in the caller's transaction. Return None if the job is not paused."""
    job = await rows.get_job(connection, job_id, lock=True)
    if job is None or not job.is_paused:
        return None
    [queue_id] = await queue.enqueue(connection, [job_id], priority=job.priority)
    return await rows.resume(connection, job_id, queue_id=queue_id)


class JobPauser:
    """Pauses jobs, and resumes them in the background.

    ``state`` returns the circuit breaker state of a model (None: the default model).
    """

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        *,
        state: Callable[[str | None], CircuitState],
        budget_usd: float | None = None,
        budget_tokens: int | None = None,
    ) -> None:
        self._database = database
        self._queue = queue
        self._state = state
        self._budgets = {INSTALLATION_BUDGET: budget_usd, INSTALLATION_TOKEN_BUDGET: budget_tokens}
        self._probes: dict[str | None, str] = {}
        """The job that was resumed as a probe, by model."""

    async def pause(self, fence: Fence, error: LLMRejected | ModelNotConfigured, detail: str) -> bool:
        """Pause a running job. Return False if its fencing token is no longer valid.

        ``detail`` is the message of ``error`` without secrets.
        """
        code, remedy = _code_and_remedy(error)
        _log.warning("job paused", job_id=fence.job_id, code=code)
        async with self._database.begin() as connection:
            return await rows.pause(connection, fence, JobError(code=code, detail=f"{detail}. {remedy}"))

    async def pause_for_budget(
        self, fence: Fence, error: JobBudgetExhausted, result: NewResult | None, now: datetime
    ) -> bool:
        """Pause a running job and store its incomplete result. Return False if its fencing token is no longer valid."""
        _log.warning("job paused", job_id=fence.job_id, code=BUDGET, budget_id=error.budget_id)
        limit = _LIMITS.get(error.budget_id, "the submission's budget_usd")
        job_error = JobError(code=BUDGET, detail=f"{limit}: {error}. {_BUDGET_REMEDY.format(limit=limit)}")
        async with self._database.begin() as connection:
            paused = await rows.pause_for_budget(
                connection,
                fence,
                job_error,
                budget_id=error.budget_id,
                limit_usd=error.limit_usd,
                result_id=None if result is None else result.id,
            )
            if paused is not None and result is not None:
                await insert_result(connection, dataclasses.replace(paused, attempts=fence.attempt), result, now=now)
            return paused is not None

    async def resume_ready_jobs(self) -> int:
        """Resume the jobs that can continue, and return their number.

        Raises:
            DatabaseUnavailable: The database cannot be reached.
        """
        async with self._database.begin() as connection:
            models = await rows.paused_models(connection)
            affordable = await rows.jobs_with_raised_budget(connection, installation=self._budgets, limit=_MAX_RESUMED)
        resumed = sum([await self._resume(job) for job in affordable])
        return resumed + sum([await self._resume_model(model) for model in models])

    async def _resume_model(self, model: str | None) -> int:
        state = self._state(model)
        if state is CircuitState.OPEN:
            return 0
        async with self._database.begin() as connection:
            waiting = await rows.paused_jobs(connection, model, limit=_MAX_RESUMED)
        if not waiting:
            return 0
        if state is CircuitState.CLOSED:
            return sum([await self._resume(job) for job in waiting])
        if await self._is_running(self._probes.get(model)):
            return 0
        self._probes[model] = waiting[0].id
        return await self._resume(waiting[0])

    async def _is_running(self, job_id: str | None) -> bool:
        if job_id is None:
            return False
        async with self._database.begin() as connection:
            job = await rows.get_job(connection, job_id)
        return job is not None and not job.has_ended and not job.is_paused

    async def _resume(self, job: Job) -> bool:
        async with self._database.begin() as connection:
            resumed = await resume_job(connection, self._queue, job.id)
        if resumed is not None:
            _log.info("job resumed", job_id=job.id)
        return resumed is not None


def _code_and_remedy(error: LLMRejected | ModelNotConfigured) -> tuple[str, str]:
    """Return the error code of a pause, and the text that says how it ends."""
    match error:
        case LLMProviderPaused():
            return PROVIDER_PAUSED, _PROVIDER_PAUSED_REMEDY
        case LLMRejected():
            return LLM_REJECTED, _NO_SUCH_MODEL_REMEDY if error.no_such_model else _REJECTED_REMEDY
        case _:
            return MODEL_NOT_CONFIGURED, _NO_KEY_REMEDY


class JobControl:
    """Operations that users request on jobs."""

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        *,
        clock: Clock,
        attempts_allowed: int,
        allow_probe: Callable[[str | None], None],
    ) -> None:
        """``allow_probe`` is called with the model of a paused job that is retried (None: the default model).

        It lets one probe request through the circuit breaker.
        """
        self._database = database
        self._queue = queue
        self._clock = clock
        self._attempts_allowed = attempts_allowed
        self._allow_probe = allow_probe

    async def cancel(self, job_id: str, *, owner: str | None = None) -> Job:
        """Cancel a job and interrupt the worker that runs it. Do nothing if the job is cancelled already.

        Args:
            owner: Only a job of this owner; None: of any owner.

        Raises:
            JobNotFound: There is no such job.
            JobStateConflict: The job has ended.
        """
        async with self._database.begin() as connection:
            job = await rows.get_job(connection, job_id, owner=owner, lock=True)
            if job is None:
                raise JobNotFound(job_id)
            if job.status is JobStatus.CANCELLED:
                return job
            cancelled = await rows.cancel(connection, job_id, now=self._clock.now())
            if cancelled is None:
                raise JobStateConflict(f"The job has already {job.status}, so it cannot be cancelled")
            if job.queue_id is not None:
                await self._queue.cancel_entries(connection, [job.queue_id])
            return cancelled

    async def cancel_all(self, submission_id: str, *, owner: str | None = None) -> list[Job]:
        """Cancel all unfinished jobs of a submission in one transaction, and return them. ``owner``: None for any."""
        async with self._database.begin() as connection:
            cancelled = await rows.cancel_jobs(connection, submission_id, owner=owner, now=self._clock.now())
            await self._queue.cancel_entries(
                connection, [job.queue_id for job in cancelled if job.queue_id is not None]
            )
            return cancelled

    async def retry(self, job_id: str, *, owner: str | None = None) -> Job:
        """Queue a job again that has ended or is paused. An earlier result stays available under its own ID.

        Args:
            owner: Only a job of this owner; None: of any owner.

        Raises:
            JobNotFound: There is no such job.
            JobStateConflict: The job is queued or running.
        """
        async with self._database.begin() as connection:
            job = await rows.get_job(connection, job_id, owner=owner, lock=True)
            if job is None:
                raise JobNotFound(job_id)
            if job.is_paused:
                self._allow_probe(job.model)
                return await resume_job(connection, self._queue, job_id) or job
            if not job.has_ended:
                raise JobStateConflict(f"The job is {job.status}: cancel it first")
            [queue_id] = await self._queue.enqueue(connection, [job_id], priority=job.priority)
            restarted = await rows.restart(connection, job_id, queue_id=queue_id, attempts=self._attempts_allowed)
            if restarted is None:
                raise JobStateConflict("The job has not ended")
            return restarted
