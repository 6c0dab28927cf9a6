"""Taking work in: submissions, their answers and one queued job per answer, in one transaction or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from answers.submission import Submission
from app.clock import Clock, Ids
from app.jobs.queue import JobQueue
from app.storage.database import Database
from app.storage.idempotency import IdempotencyKey, recall, remember
from app.storage.jobs import insert_jobs
from app.storage.records import JobStatus, NewJob, SubmissionRecord
from app.storage.submissions import insert_answers, insert_submission


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


class Intake:
    """Stores submissions that were checked already."""

    def __init__(self, database: Database, queue: JobQueue, *, clock: Clock, ids: Ids, attempts_allowed: int) -> None:
        self._database = database
        self._queue = queue
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
    ) -> dict[str, Any]:
        """Store and queue everything, and return ``respond(receipts)``; for a repeated ``key`` the first answer.

        Raises:
            KeyInProgress, KeyReused: the key cannot be honoured; nothing was stored.
            DatabaseUnavailable: nothing was stored.
        """
        async with self._database.begin() as connection:
            if key is not None and (known := await recall(connection, key)) is not None:
                replayed: dict[str, Any] = json.loads(known)
                return replayed
            now = self._clock.now()
            await insert_answers(connection, (answer for one in submissions for answer in one.answers))
            receipts = []
            for submission in submissions:
                record = SubmissionRecord(
                    id=self._ids.new("sub"),
                    owner=owner,
                    agent=submission.agent,
                    task_id=submission.task_id,
                    model=submission.model,
                    run=submission.run,
                    metadata=dict(submission.metadata),
                    created_at=now,
                )
                job_ids = [self._ids.new("job") for _ in submission.answers]
                queue_ids = await self._queue.enqueue(connection, job_ids)
                jobs = [
                    NewJob(id=job_id, queue_id=queue_id, answer_name=answer.name, answer_sha256=answer.sha256)
                    for job_id, queue_id, answer in zip(job_ids, queue_ids, submission.answers, strict=True)
                ]
                await insert_submission(connection, record)
                await insert_jobs(connection, record, jobs, attempts_allowed=self._attempts_allowed)
                named = tuple((job.id, job.answer_name) for job in jobs)
                receipts.append(Receipt(id=record.id, agent=record.agent, task_id=record.task_id, jobs=named))
            response = respond(receipts)
            if key is not None:
                await remember(connection, key, json.dumps(response), now=now)
            return response
