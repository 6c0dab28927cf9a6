"""Jobs that wait for somebody: put aside while a model's provider refuses everything, while no key for it is set, or
while a budget is spent; and taken up again.

A paused job is ``queued`` with the stage ``paused``: no worker can take it, and the attempt does not count. While
nobody knows whether the provider answers again, one job at a time goes ahead to find out; its first request is
the probe. Once the provider answers, all of them go on. A job that lacks money goes on once its budget was raised; what
could be judged without is a result meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.background import until_next_round
from app.jobs.errors import BudgetReached
from app.jobs.queue import JobQueue
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.purses import INSTALLATION, INSTALLATION_TOKENS
from app.storage.records import Fence, Job, JobError, NewResult
from app.storage.results import insert_result
from judges.errors import LLMProviderPaused, LLMRejected, ModelNotConfigured
from judges.llm.circuit import CircuitState

LLM_REJECTED = "LLM_REJECTED"
PROVIDER_PAUSED = "PROVIDER_PAUSED"
MODEL_NOT_CONFIGURED = "MODEL_NOT_CONFIGURED"
BUDGET = "BUDGET"
_ROUND_S = 1.0
_AT_ONCE = 200
"""How many jobs are taken up again in one round, of each kind."""
_REMEDY = (
    "The job waits: mend the key, the account or the access to the model. It goes on when the service was started "
    "with the new key, by itself within a minute or two where the old one works again, or on retry"
)
_NO_SUCH_MODEL = (
    "The job waits until the provider has this model: it continues by itself within a minute or two then, or on retry. "
    "To judge by another model, cancel the job and submit the answer with that model, or set ASSAY_MODEL if the "
    "submission named none"
)
_HELD = "The job waits: it goes on once the provider was resumed"
_NO_KEY = "The job waits: it goes on when a worker was started with what is missing"
_NO_MONEY = "The job waits, its result says what could be judged: it goes on when {limit} was raised"
_LIMITS = {INSTALLATION: "ASSAY_BUDGET_USD", INSTALLATION_TOKENS: "ASSAY_BUDGET_TOKENS"}
_log = structlog.get_logger(__name__)


async def resume_job(connection: AsyncConnection, queue: JobQueue, job_id: str) -> Job | None:
    """Queue a paused job again, in the caller's transaction; None when it was not paused."""
    job = await rows.get_job(connection, job_id, lock=True)
    if job is None or not job.paused:
        return None
    [queue_id] = await queue.enqueue(connection, [job_id], priority=job.priority)
    return await rows.resume(connection, job_id, queue_id=queue_id)


class Pausing:
    """Puts jobs aside and resumes them. ``state`` tells of a model (None: the default one) what to expect of it."""

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        *,
        state: Callable[[str | None], CircuitState],
        budget_usd: float | None = None,
        budget_tokens: int | None = None,
        round_s: float = _ROUND_S,
    ) -> None:
        self._database = database
        self._queue = queue
        self._state = state
        self._budgets = {INSTALLATION: budget_usd, INSTALLATION_TOKENS: budget_tokens}
        self._round_s = round_s
        self._ahead: dict[str | None, str] = {}
        """By model, the job that went ahead of the others."""

    async def run(self) -> None:
        """Resume what can be resumed, until cancelled."""
        while True:
            try:
                await self.resume_some()
            except DatabaseUnavailable as error:
                _log.warning("paused jobs not looked at", detail=str(error))
            await until_next_round(self._round_s)

    async def pause(self, fence: Fence, why: LLMRejected | ModelNotConfigured, detail: str) -> bool:
        """Put a running job aside; ``detail`` is what may be told of ``why``. Whether the fence still held."""
        code, remedy = _told(why)
        _log.warning("job paused", job_id=fence.job_id, code=code)
        async with self._database.begin() as connection:
            return await rows.pause(connection, fence, JobError(code=code, detail=f"{detail}. {remedy}"))

    async def pause_for_money(self, fence: Fence, why: BudgetReached, result: NewResult | None, now: datetime) -> bool:
        """Put a running job aside with what could be judged of it. Whether the fence still held."""
        _log.warning("job paused", job_id=fence.job_id, code=BUDGET, purse=why.purse)
        limit = _LIMITS.get(why.purse, "the submission's budget_usd")
        error = JobError(code=BUDGET, detail=f"{limit}: {why}. {_NO_MONEY.format(limit=limit)}")
        async with self._database.begin() as connection:
            paused = await rows.pause_for_money(
                connection,
                fence,
                error,
                purse=why.purse,
                limit_usd=why.limit_usd,
                result_id=None if result is None else result.id,
            )
            if paused is not None and result is not None:
                await insert_result(connection, dataclasses.replace(paused, attempts=fence.attempt), result, now=now)
            return paused is not None

    async def resume_some(self) -> int:
        """One round; returns how many jobs were resumed.

        Raises:
            DatabaseUnavailable
        """
        async with self._database.begin() as connection:
            models = await rows.paused_models(connection)
            affordable = await rows.jobs_with_money(connection, installation=self._budgets, limit=_AT_ONCE)
        resumed = sum([await self._resume(job) for job in affordable])
        return resumed + sum([await self._resume_model(model) for model in models])

    async def _resume_model(self, model: str | None) -> int:
        state = self._state(model)
        if state is CircuitState.REFUSED:
            return 0
        async with self._database.begin() as connection:
            waiting = await rows.paused_jobs(connection, model, limit=_AT_ONCE)
        if not waiting:
            return 0
        if state is CircuitState.ANSWERING:
            return sum([await self._resume(job) for job in waiting])
        if await self._is_under_way(self._ahead.get(model)):
            return 0
        self._ahead[model] = waiting[0].id
        return await self._resume(waiting[0])

    async def _is_under_way(self, job_id: str | None) -> bool:
        if job_id is None:
            return False
        async with self._database.begin() as connection:
            job = await rows.get_job(connection, job_id)
        return job is not None and not job.ended and not job.paused

    async def _resume(self, job: Job) -> bool:
        async with self._database.begin() as connection:
            resumed = await resume_job(connection, self._queue, job.id)
        if resumed is not None:
            _log.info("job resumed", job_id=job.id)
        return resumed is not None


def _told(why: LLMRejected | ModelNotConfigured) -> tuple[str, str]:
    """The code of a pause, and what ends it."""
    match why:
        case LLMProviderPaused():
            return PROVIDER_PAUSED, _HELD
        case LLMRejected():
            return LLM_REJECTED, _NO_SUCH_MODEL if why.no_such_model else _REMEDY
        case _:
            return MODEL_NOT_CONFIGURED, _NO_KEY
