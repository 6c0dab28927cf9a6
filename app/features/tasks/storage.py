"""Queries of the scores of tasks. Call every function inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Subquery, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.records import JobKind
from app.storage.results import owned_by
from app.storage.tables import jobs, results
from rubrics.scoring import Score, bounded_score


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredAnswer:
    """Newest result of an answer, without its body."""

    result_id: str
    job_id: str
    agent: str
    answer_name: str
    run: str | None
    status: str
    score: Score
    created_at: datetime


async def scored_answers(
    connection: AsyncConnection, task_id: str, *, limit: int, owner: str | None = None, before: str | None = None
) -> list[ScoredAnswer]:
    """Return the newest result of each answer to a task, newest first. ``before`` is the last ID of the page before."""
    newest = _newest(owner, task_id)
    query = select(
        newest.c.id.label("result_id"),
        newest.c.job_id,
        newest.c.agent,
        newest.c.answer_name,
        newest.c.run,
        newest.c.status,
        newest.c.score_low,
        newest.c.score_high,
        newest.c.created_at,
    )
    if before is not None:
        query = query.where(newest.c.id < before)
    found = await connection.execute(query.order_by(newest.c.id.desc()).limit(limit))
    return [
        ScoredAnswer(score=bounded_score(values.pop("score_low"), values.pop("score_high")), **values)
        for values in map(dict, found.mappings())
    ]


def _newest(owner: str | None, task_id: str) -> Subquery:
    answer = (results.c.owner, results.c.task_id, results.c.agent, jobs.c.run, results.c.answer_name)
    filters = [results.c.kind == JobKind.ANSWER, results.c.task_id == task_id, *owned_by(owner)]
    columns = [results.c[name] for name in ("id", "job_id", "status", "score_low", "score_high", "created_at")]
    of_answers = select(*answer, *columns).join(jobs, jobs.c.id == results.c.job_id).where(*filters)
    query = of_answers.order_by(*answer, results.c.id.desc())
    return query.ext(distinct_on(*answer)).subquery()
