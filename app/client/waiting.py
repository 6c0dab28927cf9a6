"""The bookkeeping of waiting for jobs, without the waiting: shared by the blocking and the asyncio client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from app.client.errors import ApiError, WaitTimeout
from app.client.values import Job


class Waiting:
    """Which of the jobs asked for are still open, and whether the time given is over (seconds, monotonic)."""

    def __init__(
        self, job_ids: Iterable[str], *, timeout_s: float | None, on_update: Callable[[Job], None] | None
    ) -> None:
        self._jobs: dict[str, Job | None] = dict.fromkeys(job_ids)
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._on_update = on_update

    def pending(self) -> list[str]:
        return [job_id for job_id, job in self._jobs.items() if job is None or not job.done]

    def seen(self, job: Job) -> None:
        self._jobs[job.id] = job
        if self._on_update is not None:
            self._on_update(job)

    def jobs(self) -> list[Job]:
        """The jobs seen, in the order asked for."""
        return [job for job in self._jobs.values() if job is not None]

    def told_to_wait(self, error: ApiError) -> float:
        """How long the server asks to be left alone (seconds); raises ``error`` when it does not, or for too long."""
        if error.retry_after_s is None:
            raise error
        left = float("inf") if self._deadline is None else self._deadline - time.monotonic()
        if error.retry_after_s > left:
            raise error
        return error.retry_after_s

    def check_deadline(self) -> None:
        """Raises WaitTimeout once the time given is over."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise WaitTimeout({job.id: job.status for job in self.jobs() if not job.done})
