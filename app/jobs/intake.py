"""Intake of submissions: store the answers and queue one job per answer, atomically.

Submitting answers is the most frequent write that clients wait for. A single statement needs one round trip and is
atomic without an explicit transaction.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from answers.submission import Answer, Submission
from app.clock import Clock, IdGenerator
from app.jobs.queue import QUEUE, TASK, QueueLimit
from app.storage.database import Database
from app.storage.direct_pool import DirectConnection
from app.storage.idempotency import IdempotencyKey, find_response, store_response
from app.storage.records import JobKind, JobStatus
from app.storage.webhooks import Webhook, insert_submission_webhook
from judges.cpu_bound import LARGE_TEXT_CHARS, run_cpu_bound

_MANY_ANSWERS = 200
"""Below this number, preparing short answers takes less than 10 ms."""
_BATCH_CHARS = 1_000_000
"""Maximum characters of several answers in one statement. Sending them takes up to 10 ms of the event loop."""
_Statement: TypeAlias = tuple[str, dict[str, Any]]


def _json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows for ``json_to_recordset``, which is much cheaper than the driver's arrays.

    Each row is encoded by a call of its own, because other threads wait for the end of a call.
    """
    return f"[{','.join(json.dumps(row, ensure_ascii=False) for row in rows)}]"


def _answer_rows(texts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the rows of the answers with these digests and texts, in batches. Takes up to 40 ms per MB."""
    rows: list[dict[str, Any]] = []
    chars = 0
    for sha256, text in texts:
        chars += len(text)
        if rows and chars > _BATCH_CHARS:
            yield _json(rows)
            rows, chars = [], len(text)
        rows.append({"sha256": sha256, "text": text, "words": len(text.split())})
    yield _json(rows)


_INSERT_ANSWERS = """
INSERT INTO answers (sha256, text, words)
SELECT * FROM json_to_recordset(%(texts)s::json) AS new (sha256 text, text text, words int)
ON CONFLICT DO NOTHING
"""
# Answer texts that are stored already are not changed. All parts of the statement see the tables as they were before
# it. PostgreSQL checks the foreign keys between the new rows at its end. procrastinate returns the queue entries in the
# order of its input.
_INSERT = f"""
WITH new_answers AS ({_INSERT_ANSWERS}), new_submission AS (
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
                  queue_id, attempts_allowed, created_at, priority, kind, run, supplied)
SELECT job.id, %(id)s, %(owner)s, job.position, %(agent)s, %(task_id)s, job.name, job.sha256, %(model)s, %(status)s,
       entries.entry, %(attempts)s, %(created_at)s, %(priority)s, %(kind)s, %(run)s, job.supplied
FROM json_to_recordset(%(jobs)s::json) AS job (position int, id text, name text, sha256 text, supplied text)
JOIN entries ON entries.position = job.position + 1
"""  # noqa: S608 - both parts are constants


_INSERT_AGAIN = """
WITH sources AS (
    SELECT new.id, row_number() OVER (ORDER BY new.position) AS position, jobs.agent, jobs.task_id, jobs.answer_name,
           jobs.answer_sha256, coalesce(%(model)s, jobs.model) AS model, jobs.run, jobs.supplied
    FROM json_to_recordset(%(jobs)s::json) AS new (position int, id text, source text)
    JOIN jobs ON jobs.id = new.source AND jobs.owner = %(owner)s AND jobs.kind = %(kind)s
), new_submission AS (
    INSERT INTO submissions (id, owner, agent, task_id, model, metadata, created_at, priority, budget_usd)
    VALUES (%(id)s, %(owner)s, %(agent)s, %(task_id)s, %(model)s, '{}', %(created_at)s, %(priority)s, %(budget_usd)s)
), entries AS (
    SELECT entry, position FROM unnest(procrastinate_defer_jobs_v1(ARRAY(
        SELECT ROW(%(queue)s, %(task)s, %(priority)s::int, NULL, NULL, jsonb_build_object('job_id', id), NULL)
               ::procrastinate_job_to_defer_v1
        FROM sources
        ORDER BY position
    ))) WITH ORDINALITY AS deferred (entry, position)
)
INSERT INTO jobs (id, submission_id, owner, position, agent, task_id, answer_name, answer_sha256, model, status,
                  queue_id, attempts_allowed, created_at, priority, kind, stored_pages, run, supplied)
SELECT sources.id, %(id)s, %(owner)s, sources.position - 1, sources.agent, sources.task_id, sources.answer_name,
       sources.answer_sha256, sources.model, %(status)s, entries.entry, %(attempts)s, %(created_at)s, %(priority)s,
       %(kind)s, %(stored_pages)s, sources.run, sources.supplied
FROM sources
JOIN entries ON entries.position = sources.position
"""


def _supplied(answer: Answer, policy: str | None) -> str | None:
    """Return the JSON of a ``SuppliedEvidence``; None for an answer without supplied pages and policy."""
    return json.dumps({"pages": answer.supplied, "policy": policy}) if answer.supplied or policy else None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgain:
    """Submission whose answers are those of earlier jobs.

    The new jobs have the agent, task, answer and model of the ``sources`` (job IDs).

    Attributes:
        id: ID of the new submission.
        model: Replaces the models of the sources.
        agent, task_id: Shown for the submission, because its jobs can be of several agents and tasks.
        stored_pages: Use stored pages only.
    """

    id: str
    sources: Sequence[str]
    owner: str
    agent: str
    task_id: str
    model: str | None = None
    stored_pages: bool = False


class Intake:
    """Writer of validated submissions."""

    def __init__(
        self, database: Database, queue_limit: QueueLimit, *, clock: Clock, ids: IdGenerator, attempts_allowed: int
    ) -> None:
        self._database = database
        self._queue_limit = queue_limit
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
        options: JobOptions | None = None,
        webhook: Webhook | None = None,
    ) -> dict[str, Any]:
        """Store and queue all submissions, and return ``respond(receipts)``. ``webhook`` is for the only submission.

        For a repeated ``key`` return the stored response of the first request.

        Raises:
            KeyInProgress, KeyReused: The idempotency key cannot be used. Nothing was stored.
            QueueFull: Too many jobs are queued. Nothing was stored.
            DatabaseUnavailable: The outcome is unknown. A retry with the same key is safe.
        """
        now = self._clock.now()
        answers = [answer.text for submission in submissions for answer in submission.answers]

        def prepare() -> tuple[list[_Statement], list[SubmissionReceipt], dict[str, Any]]:
            prepared = [self._prepare(each, options or JobOptions(), owner=owner, now=now) for each in submissions]
            receipts = [receipt for _, receipt in prepared]
            return [each for statements, _ in prepared for each in statements], receipts, respond(receipts)

        limit_chars = LARGE_TEXT_CHARS if len(answers) < _MANY_ANSWERS else 0
        statements, receipts, response = await run_cpu_bound(prepare, *answers, limit_chars=limit_chars)

        async def insert(connection: DirectConnection) -> None:
            for statement, values in statements:
                await connection.execute(statement, values)
            if webhook is not None:
                [receipt] = receipts
                await insert_submission_webhook(connection, replace(webhook, submission_id=receipt.id))

        # A single statement is atomic. Only several statements need an explicit transaction.
        needs_transaction = key is not None or len(statements) > 1 or webhook is not None
        return await self._store(insert, len(answers), response, key, now=now, needs_transaction=needs_transaction)

    async def is_repeated(self, key: IdempotencyKey) -> bool:
        """Return whether a request with this key was accepted, so that ``accept`` will only return its response.

        Raises:
            KeyInProgress, KeyReused: The idempotency key cannot be used.
            DatabaseUnavailable: The key cannot be looked up.
        """
        async with self._database.pooled_connection() as connection, connection.transaction():
            return await find_response(connection, key) is not None

    async def judge_again(
        self,
        again: JudgeAgain,
        *,
        response: dict[str, Any],
        key: IdempotencyKey | None = None,
        options: JobOptions | None = None,
    ) -> dict[str, Any]:
        """Queue the answers of earlier jobs again, in a new submission.

        Return ``response``, or the stored response for a repeated ``key``. Jobs of other owners, and jobs that were
        removed meanwhile, are skipped. Raises the same errors as ``accept``.
        """
        options, now = options or JobOptions(), self._clock.now()
        jobs = [
            {"position": position, "id": self._ids.new("job"), "source": source}
            for position, source in enumerate(again.sources)
        ]
        values = {
            "id": again.id,
            "owner": again.owner,
            "agent": again.agent,
            "task_id": again.task_id,
            "model": again.model,
            "created_at": now,
            "priority": options.priority,
            "budget_usd": options.budget_usd,
            "kind": str(options.kind),
            "jobs": _json(jobs),
            "queue": QUEUE,
            "task": TASK,
            "status": str(JobStatus.QUEUED),
            "attempts": self._attempts_allowed,
            "stored_pages": again.stored_pages,
        }

        async def insert(connection: DirectConnection) -> None:
            await connection.execute(_INSERT_AGAIN, values)

        return await self._store(insert, len(jobs), response, key, now=now, needs_transaction=key is not None)

    async def _store(
        self,
        insert: Callable[[DirectConnection], Awaitable[None]],
        count: int,
        response: dict[str, Any],
        key: IdempotencyKey | None,
        *,
        now: datetime,
        needs_transaction: bool,
    ) -> dict[str, Any]:
        """Run ``insert``, which queues ``count`` jobs, and return the response, or the stored one for a known key."""
        async with (
            self._database.pooled_connection() as connection,
            connection.transaction() if needs_transaction else nullcontext(),
        ):
            if key is not None and (known := await find_response(connection, key)) is not None:
                replayed: dict[str, Any] = json.loads(known)
                return replayed
            await self._queue_limit.admit(connection, count)
            await insert(connection)
            if key is not None:
                await store_response(connection, key, json.dumps(response), now=now)
        return response

    def _prepare(
        self, submission: Submission, options: JobOptions, *, owner: str, now: datetime
    ) -> tuple[list[_Statement], SubmissionReceipt]:
        """Return the statements that store a submission, and its receipt."""
        submission_id = self._ids.new("sub")
        jobs = [(self._ids.new("job"), answer, answer.sha256) for answer in submission.answers]
        # A fixed order of the texts prevents deadlocks between submissions with the same answers.
        *batches, last = _answer_rows(sorted({sha256: answer.text for _, answer, sha256 in jobs}.items()))
        values = {
            "id": submission_id,
            "owner": owner,
            "agent": submission.agent,
            "task_id": submission.task_id,
            "model": submission.model,
            "run": submission.run,
            "metadata": json.dumps(dict(submission.metadata)),
            "created_at": now,
            "priority": options.priority,
            "kind": str(options.kind),
            "budget_usd": options.budget_usd,
            "texts": last,
            "queue": QUEUE,
            "task": TASK,
            "jobs": _json(
                {
                    "position": position,
                    "id": job_id,
                    "name": answer.name,
                    "sha256": sha256,
                    "supplied": _supplied(answer, submission.evidence_policy),
                }
                for position, (job_id, answer, sha256) in enumerate(jobs)
            ),
            "status": str(JobStatus.QUEUED),
            "attempts": self._attempts_allowed,
        }
        named = tuple((job_id, answer.name) for job_id, answer, _ in jobs)
        receipt = SubmissionReceipt(id=submission_id, agent=submission.agent, task_id=submission.task_id, jobs=named)
        return [*((_INSERT_ANSWERS, {"texts": each}) for each in batches), (_INSERT, values)], receipt
