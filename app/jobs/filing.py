"""Insert statement for a submission with its answers, jobs and queue entries.

Submitting answers is the most frequent write that clients wait for. A single statement needs one round trip and is
atomic without an explicit transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from answers.submission import Answer
from app.jobs.queue import QUEUE, TASK
from app.storage.direct import DirectConnection
from app.storage.records import JobStatus, SubmissionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """Job to be stored, for one answer."""

    id: str
    answer: Answer


async def insert_submission(
    connection: DirectConnection,
    submission: SubmissionRecord,
    jobs: Sequence[NewJob],
    *,
    attempts_allowed: int,
) -> None:
    """Store a submission and queue its jobs. Answer texts that are stored already are not changed."""
    # A fixed order of the texts prevents deadlocks between submissions with the same answers.
    texts = sorted({job.answer.sha256: job.answer.text for job in jobs}.items())
    await connection.execute(
        _FILE,
        {
            "id": submission.id,
            "owner": submission.owner,
            "agent": submission.agent,
            "task_id": submission.task_id,
            "model": submission.model,
            "run": submission.run,
            "metadata": json.dumps(submission.metadata),
            "created_at": submission.created_at,
            "priority": submission.priority,
            "kind": str(submission.kind),
            "budget_usd": submission.budget_usd,
            "texts": _json({"sha256": sha256, "text": text, "words": len(text.split())} for sha256, text in texts),
            "queue": QUEUE,
            "task": TASK,
            "jobs": _json(
                {"position": position, "id": job.id, "name": job.answer.name, "sha256": job.answer.sha256}
                for position, job in enumerate(jobs)
            ),
            "status": str(JobStatus.QUEUED),
            "attempts": attempts_allowed,
        },
    )


def _json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows for ``json_to_recordset``, which is much cheaper than the driver's arrays."""
    return json.dumps(list(rows), ensure_ascii=False)


# All parts of the statement see the tables as they were before it. PostgreSQL checks the foreign keys between the new
# rows at its end. procrastinate returns the queue entries in the order of its input.
_FILE = """
WITH filed_answers AS (
    INSERT INTO answers (sha256, text, words)
    SELECT * FROM json_to_recordset(%(texts)s::json) AS new (sha256 text, text text, words int)
    ON CONFLICT DO NOTHING
), filed_submission AS (
    INSERT INTO submissions (id, owner, agent, task_id, model, run, metadata, created_at, priority, budget_usd)
    VALUES (%(id)s, %(owner)s, %(agent)s, %(task_id)s, %(model)s, %(run)s, %(metadata)s, %(created_at)s, %(priority)s,
            %(budget_usd)s)
), entries AS (
    SELECT entry, position FROM unnest(procrastinate_defer_jobs_v1(ARRAY(
        SELECT ROW(%(queue)s, %(task)s, %(priority)s::int, NULL, NULL, jsonb_build_object('job_id', id), NULL)
               ::procrastinate_job_to_defer_v1
        FROM json_to_recordset(%(jobs)s::json) AS job (position int, id text)
        ORDER BY position
    ))) WITH ORDINALITY AS deferred (entry, position)
)
INSERT INTO jobs (id, submission_id, owner, position, agent, task_id, answer_name, answer_sha256, model, status,
                  queue_id, attempts_allowed, created_at, priority, kind)
SELECT job.id, %(id)s, %(owner)s, job.position, %(agent)s, %(task_id)s, job.name, job.sha256, %(model)s, %(status)s,
       entries.entry, %(attempts)s, %(created_at)s, %(priority)s, %(kind)s
FROM json_to_recordset(%(jobs)s::json) AS job (position int, id text, name text, sha256 text)
JOIN entries ON entries.position = job.position + 1
"""
