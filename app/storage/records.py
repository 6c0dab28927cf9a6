"""What the tables hold, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class JobStatus(StrEnum):
    """Where a job stands. The words are those of the HTTP contract."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    """A result exists, perhaps an incomplete one."""
    FAILED = "failed"
    """No result exists; the error says why."""
    CANCELLED = "cancelled"


class JobKind(StrEnum):
    """What a job does."""

    ANSWER = "answer"
    """Judges one answer."""
    SUITE = "suite"
    """Runs a step benchmark; the job's answer holds the run's options."""


PAUSED = "paused"
"""The stage of a queued job that waits for the operator and not for a worker."""

TERMINAL = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Why a job has no result. ``traceback`` only where it helps the author of a judge."""

    code: str
    detail: str
    traceback: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of scheduled work: one answer to be judged once."""

    id: str
    submission_id: str
    owner: str
    agent: str
    task_id: str
    answer_name: str
    answer_sha256: str
    model: str | None
    status: JobStatus
    stage: str | None
    pages_done: int
    pages_total: int
    leaves_done: int
    leaves_total: int
    queue_id: int | None
    attempts: int
    attempts_allowed: int
    error: JobError | None
    result_id: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    revision: int
    priority: int = 0
    paused_purse: str | None = None
    paused_limit_usd: float | None = None
    kind: JobKind = JobKind.ANSWER

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL

    @property
    def paused(self) -> bool:
        return self.status is JobStatus.QUEUED and self.stage == PAUSED

    @property
    def fence(self) -> Fence:
        return Fence(job_id=self.id, queue_id=self.queue_id, attempt=self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """What a worker must still hold to write: the job's present queue entry and attempt."""

    job_id: str
    queue_id: int | None
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRecord:
    """A stored submission. ``owner`` is who sent it: a fingerprint of the key, never the key."""

    id: str
    owner: str
    agent: str
    task_id: str
    model: str | None
    run: str | None
    metadata: dict[str, Any]
    created_at: datetime
    priority: int = 0
    budget_usd: float | None = None
    kind: JobKind = JobKind.ANSWER


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """A result about to be stored. ``body`` is its JSON text as it will be served."""

    id: str
    status: str
    final_score: float
    body: str
    page_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRecord:
    """A stored result; ``body`` is its JSON text."""

    id: str
    job_id: str
    body: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """What one answer came to: the JSON text of its result, or None and the code of what went wrong."""

    task_id: str
    answer_name: str
    words: int
    body: str | None
    error_code: str | None


class Scope(StrEnum):
    """What a key opens. Each opens what the one before does, too."""

    READ = "read"
    """Jobs, results and pages of its owner's."""
    SUBMIT = "submit"
    """Handing in answers, and stopping or repeating jobs."""
    ADMIN = "admin"
    """Everything, of every owner, and the figures of the service."""

    def opens(self, needed: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A stored API key, without the key: ``sha256`` is all that is kept of it. ``id`` may be shown."""

    id: str
    owner: str
    scope: Scope
    sha256: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def usable(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
