"""Jobs that wait for the operator: put aside while a model's provider refuses everything, and taken up again.

A paused job is ``queued`` with the stage ``paused``: no worker can take it, and the attempt does not count. While
nobody knows whether the provider answers again, one job at a time goes ahead to find out; its first request is
the probe. Once the provider answers, all of them go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.jobs.queue import JobQueue
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.records import Fence, Job, JobError
from judges.errors import LLMRejected
from judges.llm.circuit import CircuitState

LLM_REJECTED = "LLM_REJECTED"
_ROUND_S = 1.0
_REMEDY = (
    "The job waits: mend the key, the account or the access to the model. It goes on when the service was started "
    "with the new key, by itself within a minute or two where the old one works again, or on retry"
)
_log = structlog.get_logger(__name__)


async def resume_job(connection: AsyncConnection, queue: JobQueue, job_id: str) -> Job | None:
    """Queue a paused job again, in the caller's transaction; None when it was not paused."""
    job = await rows.get_job(connection, job_id, lock=True)
    if job is None or not job.paused:
        return None
    [queue_id] = await queue.enqueue(connection, [job_id])
    return await rows.resume(connection, job_id, queue_id=queue_id)


class Pausing:
    """Puts jobs aside and resumes them. ``state`` tells of a model (None: the default one) what to expect of it."""

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        *,
        state: Callable[[str | None], CircuitState],
        round_s: float = _ROUND_S,
    ) -> None:
        self._database = database
        self._queue = queue
        self._state = state
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
            await asyncio.sleep(self._round_s)

    async def pause(self, fence: Fence, why: LLMRejected, detail: str) -> bool:
        """Put a running job aside; ``detail`` is what may be told of ``why``. Whether the fence still held."""
        _log.warning("job paused", job_id=fence.job_id, status=why.status)
        async with self._database.begin() as connection:
            return await rows.pause(connection, fence, JobError(code=LLM_REJECTED, detail=f"{detail}. {_REMEDY}"))

    async def resume_some(self) -> int:
        """One round; returns how many jobs were resumed.

        Raises:
            DatabaseUnavailable
        """
        async with self._database.begin() as connection:
            waiting = await rows.paused_jobs(connection)
        by_model: dict[str | None, list[Job]] = {}
        for job in waiting:
            by_model.setdefault(job.model, []).append(job)
        return sum([await self._resume_model(model, jobs) for model, jobs in by_model.items()])

    async def _resume_model(self, model: str | None, waiting: Sequence[Job]) -> int:
        state = self._state(model)
        if state is CircuitState.REFUSED:
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
