"""What people do to jobs: stop them, and have them done again."""

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
    """Cancels and restarts jobs."""

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        *,
        clock: Clock,
        attempts_allowed: int,
        mended: Callable[[str | None], None],
    ) -> None:
        """``mended`` is told of the model (None: the default one) of a paused job that somebody wants done now."""
        self._database = database
        self._queue = queue
        self._clock = clock
        self._attempts_allowed = attempts_allowed
        self._mended = mended

    async def cancel(self, job_id: str, *, owner: str | None = None) -> Job:
        """End a job of ``owner``'s (None: anybody's) now; the worker that holds it is interrupted.

        A cancelled job stays as it is.

        Raises:
            JobNotFound, JobStateConflict: there is none, or it has ended otherwise.
        """
        async with self._database.begin() as connection:
            job = await rows.get_job(connection, job_id, owner=owner, lock=True)
            if job is None:
                raise JobNotFound(job_id)
            if job.status is JobStatus.CANCELLED:
                return job
            cancelled = await rows.cancel(connection, job_id, now=self._clock.now())
            if cancelled is None:
                raise JobStateConflict(f"the job has {job.status} already")
            if job.queue_id is not None:
                await self._queue.withdraw(connection, job.queue_id)
            return cancelled

    async def retry(self, job_id: str, *, owner: str | None = None) -> Job:
        """Queue a job of ``owner``'s that has ended or is paused; a result it had stays readable under its own id.

        Raises:
            JobNotFound, JobStateConflict: there is none, or it is neither.
        """
        async with self._database.begin() as connection:
            job = await rows.get_job(connection, job_id, owner=owner, lock=True)
            if job is None:
                raise JobNotFound(job_id)
            if job.paused:
                self._mended(job.model)
                return await resume_job(connection, self._queue, job_id) or job
            if not job.ended:
                raise JobStateConflict(f"the job is {job.status}; cancel it first")
            [queue_id] = await self._queue.enqueue(connection, [job_id], priority=job.priority)
            restarted = await rows.restart(connection, job_id, queue_id=queue_id, attempts=self._attempts_allowed)
            if restarted is None:
                raise JobStateConflict("the job has not ended")
            return restarted
