"""Taking work in: submissions, their answers and one queued job per answer, in one transaction or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from answers.submission import Submission
from app.clock import Clock, Ids
from app.jobs.filing import NewJob, file_submission
from app.jobs.room import QueueRoom
from app.storage.database import Database
from app.storage.idempotency import IdempotencyKey, recall, remember
from app.storage.records import JobKind, JobStatus, SubmissionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was taken in: a submission and its jobs, as (job id, answer name) pairs."""

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
class Terms:
    """On what terms work is taken in: higher ``priority`` first, and what judging a submission may cost (None: any).

    ``kind`` says what the jobs do with what was handed in.
    """

    priority: int = 0
    budget_usd: float | None = None
    kind: JobKind = JobKind.ANSWER


class Intake:
    """Stores submissions that were checked already."""

    def __init__(self, database: Database, room: QueueRoom, *, clock: Clock, ids: Ids, attempts_allowed: int) -> None:
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
        respond: Callable[[Sequence[Receipt]], dict[str, Any]],
        key: IdempotencyKey | None = None,
        terms: Terms | None = None,
    ) -> dict[str, Any]:
        """Store and queue everything, and return ``respond(receipts)``; for a repeated ``key`` the first answer.

        Raises:
            KeyInProgress, KeyReused: the key cannot be honoured; nothing was stored.
            QueueFull: too much is waiting already; nothing was stored.
            DatabaseUnavailable: nothing was stored, or the confirmation was lost; with a key that can be found out.
        """
        now = self._clock.now()
        filings = [self._filing(submission, terms or Terms(), owner=owner, now=now) for submission in submissions]
        response = respond([receipt for _, _, receipt in filings])
        # On its own a statement is a transaction; only what takes several needs one around them.
        together = key is not None or len(filings) > 1
        async with self._database.quickly() as connection, connection.transaction() if together else nullcontext():
            if key is not None and (known := await recall(connection, key)) is not None:
                replayed: dict[str, Any] = json.loads(known)
                return replayed
            await self._room.admit(connection, sum(len(jobs) for _, jobs, _ in filings))
            for record, jobs, _ in filings:
                await file_submission(connection, record, jobs, attempts_allowed=self._attempts_allowed)
            if key is not None:
                await remember(connection, key, json.dumps(response), now=now)
        return response

    def _filing(
        self, submission: Submission, terms: Terms, *, owner: str, now: datetime
    ) -> tuple[SubmissionRecord, list[NewJob], Receipt]:
        """What is to be stored of a submission, and what its owner is told."""
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
        return record, jobs, Receipt(id=record.id, agent=record.agent, task_id=record.task_id, jobs=named)
