"""Read-only queries for the origin of results: the job, the submission and the judged answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.records import JobKind
from app.storage.results import owned_by
from app.storage.tables import answers, jobs, results, submissions


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOrigin:
    """Result without its body. ``run`` is the label that the owner gave to the submission."""

    result_id: str
    job_id: str
    submission_id: str
    agent: str
    task_id: str
    answer_name: str
    answer_sha256: str
    run: str | None
    model: str | None
    status: str
    final_score: float
    created_at: datetime


async def origin_of(connection: AsyncConnection, result_id: str, *, owner: str | None = None) -> ResultOrigin | None:
    """Return the origin of one result, or None. ``owner`` limits the query to one owner."""
    row = (await connection.execute(_origins().where(results.c.id == result_id, *owned_by(owner)))).mappings().first()
    return None if row is None else ResultOrigin(**row)


async def list_origins(
    connection: AsyncConnection, agent: str, *, limit: int, owner: str | None = None, before: str | None = None
) -> list[ResultOrigin]:
    """Return the results of an agent, newest first. ``before`` is the ID of the last one of the previous page."""
    earlier = true() if before is None else results.c.id < before
    answers_only = results.c.kind == JobKind.ANSWER
    wanted = _origins().where(results.c.agent == agent, answers_only, earlier, *owned_by(owner))
    query = wanted.order_by(results.c.id.desc()).limit(limit)
    return [ResultOrigin(**row) for row in (await connection.execute(query)).mappings()]


async def judged_text(connection: AsyncConnection, result_id: str, *, owner: str | None = None) -> str | None:
    """Return the submitted text of the answer that a result judges, or None if there is no such result."""
    query = (
        select(answers.c.text)
        .join(jobs, jobs.c.answer_sha256 == answers.c.sha256)
        .join(results, results.c.job_id == jobs.c.id)
        .where(results.c.id == result_id, *owned_by(owner))
    )
    return (await connection.execute(query)).scalar_one_or_none()


def _origins() -> Select[tuple[object, ...]]:
    return (
        select(
            results.c.id.label("result_id"),
            results.c.job_id,
            jobs.c.submission_id,
            results.c.agent,
            results.c.task_id,
            results.c.answer_name,
            jobs.c.answer_sha256,
            submissions.c.run,
            jobs.c.model,
            results.c.status,
            results.c.final_score,
            results.c.created_at,
        )
        .join(jobs, jobs.c.id == results.c.job_id)
        .join(submissions, submissions.c.id == jobs.c.submission_id)
        .where(results.c.kind == JobKind.ANSWER)
    )
