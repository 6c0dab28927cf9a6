"""Queries of the scores of tasks. Call every function inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Subquery, case, func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.records import JobKind
from app.storage.tables import results


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScore:
    """Scores of one agent at one task, over the newest result of each answer. Leaves not judged count 0."""

    task_id: str
    agent: str
    mean_score: float
    answers: int
    incomplete: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredAnswer:
    """Newest result of an answer, without its body."""

    result_id: str
    job_id: str
    agent: str
    answer_name: str
    status: str
    final_score: float
    created_at: datetime


async def task_scores(
    connection: AsyncConnection, *, owner: str | None = None, task_id: str | None = None
) -> list[TaskScore]:
    """Return the scores by task and agent, the best agent of each task first. ``owner`` and ``task_id`` are filters."""
    newest = _newest(owner, task_id)
    mean = func.avg(newest.c.final_score)
    query = (
        select(
            newest.c.task_id,
            newest.c.agent,
            mean.label("mean_score"),
            func.count().label("answers"),
            func.sum(case((newest.c.status != "complete", 1), else_=0)).label("incomplete"),
        )
        .group_by(newest.c.task_id, newest.c.agent)
        .order_by(newest.c.task_id, mean.desc(), newest.c.agent)
    )
    return [TaskScore(**row) for row in (await connection.execute(query)).mappings()]


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
        newest.c.status,
        newest.c.final_score,
        newest.c.created_at,
    )
    if before is not None:
        query = query.where(newest.c.id < before)
    found = await connection.execute(query.order_by(newest.c.id.desc()).limit(limit))
    return [ScoredAnswer(**row) for row in found.mappings()]


def _newest(owner: str | None, task_id: str | None) -> Subquery:
    answer = (results.c.owner, results.c.task_id, results.c.agent, results.c.answer_name)
    filters: list[Any] = [results.c.kind == JobKind.ANSWER]
    if owner is not None:
        filters.append(results.c.owner == owner)
    if task_id is not None:
        filters.append(results.c.task_id == task_id)
    columns = (results.c.id, results.c.job_id, results.c.status, results.c.final_score, results.c.created_at)
    query = select(*answer, *columns).where(*filters).order_by(*answer, results.c.id.desc())
    return query.ext(distinct_on(*answer)).subquery()
