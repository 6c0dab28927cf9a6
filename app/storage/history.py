"""Where results come from: the job and submission behind each, and the answer that was judged. Reads only."""

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
    """One result without its body. ``run`` is the label its owner gave; ``final_score`` the public number."""

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
    """Where one result comes from; None where there is none, or not one of ``owner``'s (None: anybody's)."""
    row = (await connection.execute(_origins().where(results.c.id == result_id, *owned_by(owner)))).mappings().first()
    return None if row is None else ResultOrigin(**row)


async def list_origins(
    connection: AsyncConnection, agent: str, *, limit: int, owner: str | None = None, before: str | None = None
) -> list[ResultOrigin]:
    """An agent's results without their bodies, newest first; ``before`` is the id of the last one already seen."""
    earlier = true() if before is None else results.c.id < before
    answers_only = results.c.kind == JobKind.ANSWER
    wanted = _origins().where(results.c.agent == agent, answers_only, earlier, *owned_by(owner))
    query = wanted.order_by(results.c.id.desc()).limit(limit)
    return [ResultOrigin(**row) for row in (await connection.execute(query)).mappings()]


async def judged_text(connection: AsyncConnection, result_id: str, *, owner: str | None = None) -> str | None:
    """The answer that a result judges, as it was handed in; None where there is no such result."""
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
