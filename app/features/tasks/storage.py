"""Queries of the scores of tasks. Call every function inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.listings import below
from app.storage.records import stored_score
from app.storage.results import newest_of_answers
from rubrics.scoring import Score


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredAnswer:
    """Newest result of an answer, without its body."""

    result_id: str
    job_id: str
    agent: str
    answer_name: str
    run: str | None
    status: str
    score: Score | None
    created_at: datetime


async def scored_answers(
    connection: AsyncConnection, task_id: str, *, limit: int, owner: str | None = None, before: str | None = None
) -> list[ScoredAnswer]:
    """Return the newest result of each answer to a task, newest first. ``before`` is the last ID of the page before."""
    newest = newest_of_answers(owner=owner, task_id=task_id)
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
    query = query.where(*below(newest.c.id, before)).order_by(newest.c.id.desc()).limit(limit)
    found = await connection.execute(query)
    return [
        ScoredAnswer(score=stored_score(values.pop("score_low"), values.pop("score_high")), **values)
        for values in map(dict, found.mappings())
    ]
