"""Takeover of jobs whose worker was lost.

A killed worker leaves queue entries behind that are marked as running. All live workers sweep for them, one at a time.
The job gets a new queue entry, and with it a new fencing token. If the old worker was only suspended, its later writes
are rejected.
"""

from __future__ import annotations

import structlog
from sqlalchemy import text

from app.clock import Clock
from app.jobs.queue import JobQueue
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.records import Fence, Job, JobError, JobStatus

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
