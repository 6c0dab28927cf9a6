"""Cancelling and retrying jobs."""

from __future__ import annotations

from collections.abc import Callable

from app.clock import Clock
from app.jobs.errors import JobNotFound, JobStateConflict
from app.jobs.pausing import resume_job
from app.jobs.queue import JobQueue
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.records import Job, JobStatus


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
