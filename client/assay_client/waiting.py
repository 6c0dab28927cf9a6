"""State of waiting for jobs, without I/O or sleep. Both clients use it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from assay_client.errors import ApiError, WaitTimeout
from assay_client.values import Job


class JobWait:
    """Jobs to wait for, their last known states, and the deadline."""

    def __init__(
        self, job_ids: Iterable[str], *, timeout_s: float | None, on_update: Callable[[Job], None] | None
    ) -> None:
        self._jobs: dict[str, Job | None] = dict.fromkeys(job_ids)
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._on_update = on_update

    def pending(self) -> list[str]:
        """Return the ids of unfinished jobs; none if all of them are paused."""
        unfinished = {job_id: job for job_id, job in self._jobs.items() if job is None or not job.done}
        return [] if all(job is not None and job.is_paused for job in unfinished.values()) else list(unfinished)

    def update(self, job: Job) -> None:
        self._jobs[job.id] = job
        if self._on_update is not None:
            self._on_update(job)

    def jobs(self) -> list[Job]:
        """Return the jobs seen so far, in the order of the ids given."""
        return [job for job in self._jobs.values() if job is not None]

    def retry_delay_s(self, error: ApiError) -> float:
        """Return the ``Retry-After`` seconds of an error.

        Raises:
            ApiError: ``error`` has no ``Retry-After``, or its time ends after the deadline.
        """
        if error.retry_after_s is None:
            raise error
        remaining_s = float("inf") if self._deadline is None else self._deadline - time.monotonic()
        if error.retry_after_s > remaining_s:
            raise error
        return error.retry_after_s

    def check_deadline(self) -> None:
        """Check the deadline.

        Raises:
            WaitTimeout: The deadline has passed.
        """
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise WaitTimeout({job.id: _state(job) for job in self.jobs() if not job.done})


def _state(job: Job) -> str:
    """Describe an unfinished job: its status, and in parentheses its stage or why it is paused."""
    reason = f"{job.error.code}: {job.error.detail}" if job.is_paused and job.error is not None else job.stage
    return f"{job.status} ({reason})" if reason else job.status
