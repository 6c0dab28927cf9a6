"""Queries of rescores. A rescore is a submission whose ID starts with ``rescore_``. Call every function inside a
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.listings import equal
from app.storage.records import JobKind, JobStatus
from app.storage.tables import jobs, results

ID_PREFIX: Final = "rescore"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedJob:
    """Finished job whose answer can be rescored."""

    id: str
    agent: str
    task_id: str
    answer: str


async def newest_jobs(
    connection: AsyncConnection,
    *,
    owner: str,
    limit: int,
    task_id: str | None = None,
    agent: str | None = None,
    ids: Sequence[str] | None = None,
) -> list[JudgedJob]:
    """Return the newest finished job of each answer of ``owner``, by task, agent and answer name.

    ``ids`` limits the query to these jobs, and returns each of them.
    """
    place = (jobs.c.task_id, jobs.c.agent, jobs.c.answer_name)
    filters = [
        jobs.c.owner == owner,
        jobs.c.kind == JobKind.ANSWER,
        jobs.c.status.in_([JobStatus.SUCCEEDED, JobStatus.FAILED]),
        *equal((jobs.c.task_id, task_id), (jobs.c.agent, agent)),
    ]
    query = select(jobs.c.id, *place).order_by(*place, jobs.c.id.desc()).limit(limit)
    if ids is None:
        query = query.ext(distinct_on(*place))
    else:
        filters.append(jobs.c.id.in_(list(ids)))
    found = await connection.execute(query.where(*filters))
    return [JudgedJob(id=row.id, agent=row.agent, task_id=row.task_id, answer=row.answer_name) for row in found]


async def earlier_results(connection: AsyncConnection, rescore_id: str) -> dict[str, str]:
    """Return the ID of the result that each job of a rescore is compared with, by job ID.

    It is the newest result of the same answer from before the rescore.
    """
    judged = jobs.alias()
    query = (
        select(jobs.c.id, results.c.id.label("result_id"))
        .join(
            results,
            (results.c.owner == jobs.c.owner)
            & (results.c.agent == jobs.c.agent)
            & (results.c.task_id == jobs.c.task_id)
            & (results.c.answer_name == jobs.c.answer_name)
            & (results.c.created_at <= jobs.c.created_at),
        )
        .join(judged, (judged.c.id == results.c.job_id) & (judged.c.answer_sha256 == jobs.c.answer_sha256))
        .where(jobs.c.submission_id == rescore_id, judged.c.id != jobs.c.id, results.c.kind == JobKind.ANSWER)
        .order_by(jobs.c.id, results.c.id.desc())
        .ext(distinct_on(jobs.c.id))
    )
    return {row.id: row.result_id for row in await connection.execute(query)}


async def bodies_of(connection: AsyncConnection, result_ids: Iterable[str]) -> dict[str, str]:
    """Return the JSON texts of results, by ID."""
    query = select(results.c.id, results.c.body).where(results.c.id.in_(list(result_ids)))
    return {row.id: row.body for row in await connection.execute(query)}
