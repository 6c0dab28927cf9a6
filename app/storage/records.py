"""Data classes and enums of the stored rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from cache.capture import EvidencePolicy
from rubrics.scoring import Score, bounded_score


class JobStatus(StrEnum):
    """Status of a job, as in the HTTP API."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    """The job has a result, which can be incomplete."""
    FAILED = "failed"
    """The job has no result. Its error says why."""
    CANCELLED = "cancelled"


class JobKind(StrEnum):
    """Kind of work of a job."""

    ANSWER = "answer"
    """Judge one answer."""
    SUITE = "suite"
    """Run a step benchmark. The text of the job's answer contains the run's options."""
    CHECK = "check"
    """Check the citations of a report. The text of the job's answer contains the report and the options."""


PAUSED = "paused"
"""Stage of a queued job that is paused: it waits for the provider or the operator, not for a worker."""

TERMINAL = frozenset({JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    """Error of a failed or paused job. ``traceback`` is set only for errors in a task file."""

    code: str
    detail: str
    traceback: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppliedEvidence:
    """Pages that an agent supplied with its answer: the ids of their captures, and the policy that was requested."""

    pages: tuple[str, ...] = ()
    policy: EvidencePolicy | None = None

    @classmethod
    def read(cls, text: str | None) -> SuppliedEvidence:
        """Return the value of the column."""
        stored = {} if text is None else json.loads(text)
        policy = stored.get("policy")
        return cls(pages=tuple(stored.get("pages", ())), policy=None if policy is None else EvidencePolicy(policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Job: the judging of one answer, one suite run, or one citation check."""

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
    paused_budget_id: str | None = None
    paused_limit: float | None = None
    kind: JobKind = JobKind.ANSWER
    stored_pages: bool = False
    """Judge with stored pages only, and capture none."""
    run: str | None = None
    supplied: str | None = None
    """JSON of a ``SuppliedEvidence``."""

    @property
    def has_ended(self) -> bool:
        return self.status in TERMINAL

    @property
    def is_paused(self) -> bool:
        return self.status is JobStatus.QUEUED and self.stage == PAUSED

    @property
    def fence(self) -> Fence:
        return Fence(job_id=self.id, queue_id=self.queue_id, attempt=self.attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Fencing token of a job attempt. Writes of the attempt are valid only while it matches the job's row."""

    job_id: str
    queue_id: int | None
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRecord:
    """Stored submission. ``owner`` is the owner of the API key that sent it."""

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


def stored_score(low: float | None, high: float | None) -> Score | None:
    """Return the score of a stored result; None if nothing applies."""
    return None if low is None or high is None else bounded_score(low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """Result to be stored. ``body`` is the JSON text that the API returns. It has no bounds if nothing applies."""

    id: str
    status: str
    final_score: float
    score_low: float | None
    score_high: float | None
    model: str
    body: str
    page_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRecord:
    """Stored result. ``body`` is its JSON text."""

    id: str
    job_id: str
    body: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """Outcome of one answer: the JSON text of its result, or None and an error code."""

    task_id: str
    answer_name: str
    words: int
    body: str | None
    error_code: str | None
    run: str | None = None


class Scope(StrEnum):
    """Scope of an API key. Each scope includes the previous ones."""

    READ = "read"
    """Read the jobs, results and pages of the key's owner."""
    SUBMIT = "submit"
    """Submit answers, cancel and retry jobs, and change pages for the answers of the key's owner."""
    OPERATOR = "operator"
    """Use what all owners share: pause providers and read the metrics."""
    ADMIN = "admin"
    """Access the data of all owners, and change pages for all answers."""

    def includes(self, needed: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """Stored API key. Only the SHA-256 of the key is stored. The ``id`` is not secret."""

    id: str
    owner: str
    scope: Scope
    sha256: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def usable(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def storable_text(text: str) -> str:
    """Return ``text`` without NUL characters, and with each lone surrogate replaced by a question mark."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
