"""Intake of submissions: store the answers and queue one job per answer, atomically."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from answers.submission import Submission
from app.clock import Clock, IdGenerator
from app.jobs.filing import NewJob, insert_submission
from app.jobs.room import QueueLimit
from app.storage.database import Database
from app.storage.idempotency import IdempotencyKey, find_response, store_response
from app.storage.records import JobKind, JobStatus, SubmissionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionReceipt:
    """Accepted submission with its jobs as (job ID, answer name) pairs."""

    id: str
    agent: str
    task_id: str
    jobs: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        jobs = [
            {"id": job_id, "answer": answer, "status": str(JobStatus.QUEUED), "url": f"/v1/jobs/{job_id}"}
            for job_id, answer in self.jobs
        ]
        return {"id": self.id, "agent": self.agent, "task_id": self.task_id, "jobs": jobs}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """Options of a submission's jobs.

    Jobs with a higher ``priority`` run first. ``budget_usd`` limits the cost of the whole submission (None: no limit).
    """

    priority: int = 0
    budget_usd: float | None = None
    kind: JobKind = JobKind.ANSWER


class Intake:
    """Writer of validated submissions."""

    def __init__(
        self, database: Database, room: QueueLimit, *, clock: Clock, ids: IdGenerator, attempts_allowed: int
    ) -> None:
        self._database = database
        self._room = room
        self._clock = clock
        self._ids = ids
        self._attempts_allowed = attempts_allowed

    async def accept(
        self,
        submissions: Sequence[Submission],
        *,
        owner: str,
        respond: Callable[[Sequence[SubmissionReceipt]], dict[str, Any]],
        key: IdempotencyKey | None = None,
        terms: JobOptions | None = None,
    ) -> dict[str, Any]:
        """Store and queue all submissions, and return ``respond(receipts)``.

        For a repeated ``key`` return the stored response of the first request.

        Raises:
            KeyInProgress, KeyReused: The idempotency key cannot be used. Nothing was stored.
            QueueFull: Too many jobs are queued. Nothing was stored.
            DatabaseUnavailable: The outcome is unknown. A retry with the same key is safe.
        """
        now = self._clock.now()
        filings = [self._filing(submission, terms or JobOptions(), owner=owner, now=now) for submission in submissions]
        response = respond([receipt for _, _, receipt in filings])
        # A single statement is atomic. Only several statements need an explicit transaction.
        needs_transaction = key is not None or len(filings) > 1
        async with (
            self._database.pooled_connection() as connection,
            connection.transaction() if needs_transaction else nullcontext(),
        ):
            if key is not None and (known := await find_response(connection, key)) is not None:
                replayed: dict[str, Any] = json.loads(known)
                return replayed
            await self._room.admit(connection, sum(len(jobs) for _, jobs, _ in filings))
            for record, jobs, _ in filings:
                await insert_submission(connection, record, jobs, attempts_allowed=self._attempts_allowed)
            if key is not None:
                await store_response(connection, key, json.dumps(response), now=now)
        return response

    def _filing(
        self, submission: Submission, terms: JobOptions, *, owner: str, now: datetime
    ) -> tuple[SubmissionRecord, list[NewJob], SubmissionReceipt]:
        """Return the record and the jobs to store for a submission, and its receipt."""
        record = SubmissionRecord(
            id=self._ids.new("sub"),
            owner=owner,
            agent=submission.agent,
            task_id=submission.task_id,
            model=submission.model,
            run=submission.run,
            metadata=dict(submission.metadata),
            created_at=now,
            priority=terms.priority,
            budget_usd=terms.budget_usd,
            kind=terms.kind,
        )
        jobs = [NewJob(id=self._ids.new("job"), answer=answer) for answer in submission.answers]
        named = tuple((job.id, job.answer.name) for job in jobs)
        return record, jobs, SubmissionReceipt(id=record.id, agent=record.agent, task_id=record.task_id, jobs=named)
