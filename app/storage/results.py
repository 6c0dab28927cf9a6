"""The rows of results: written once, never changed. Every function takes an open transaction."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import ColumnElement, RowMapping, and_, insert, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.records import Job, JobStatus, JudgedAnswer, NewResult, ResultRecord
from app.storage.tables import answers, jobs, result_pages, results

_COLUMNS = (results.c.id, results.c.job_id, results.c.body, results.c.created_at)


async def insert_result(connection: AsyncConnection, job: Job, result: NewResult, *, now: datetime) -> None:
    """Store what an attempt of ``job`` came to; in the transaction that ends the job."""
    await connection.execute(
        insert(results).values(
            id=result.id,
            job_id=job.id,
            attempt=job.attempts,
            agent=job.agent,
            task_id=job.task_id,
            answer_name=job.answer_name,
            status=result.status,
            final_score=result.final_score,
            body=result.body,
            created_at=now,
        )
    )
    if result.page_ids:
        pages = [{"result_id": result.id, "capture_id": page} for page in sorted(set(result.page_ids))]
        await connection.execute(insert(result_pages), pages)


async def get_result(connection: AsyncConnection, result_id: str) -> ResultRecord | None:
    row = (await connection.execute(select(*_COLUMNS).where(results.c.id == result_id))).mappings().first()
    return None if row is None else _record(row)


async def list_results(
    connection: AsyncConnection,
    *,
    limit: int,
    before: str | None = None,
    agent: str | None = None,
    task_id: str | None = None,
) -> list[ResultRecord]:
    """Newest first; ``before`` is the id of the last result already seen."""
    filters: list[ColumnElement[bool]] = []
    if before is not None:
        filters.append(results.c.id < before)
    if agent is not None:
        filters.append(results.c.agent == agent)
    if task_id is not None:
        filters.append(results.c.task_id == task_id)
    query = select(*_COLUMNS).where(and_(True, *filters)).order_by(results.c.id.desc()).limit(limit)
    return [_record(row) for row in (await connection.execute(query)).mappings()]


async def answers_of(connection: AsyncConnection, agent: str) -> list[JudgedAnswer]:
    """What the newest ended job of each answer of an agent came to, by task and answer name."""
    place = (jobs.c.task_id, jobs.c.answer_name)
    query = (
        select(*place, jobs.c.error, answers.c.words, results.c.body)
        .join(answers, answers.c.sha256 == jobs.c.answer_sha256)
        .outerjoin(results, results.c.id == jobs.c.result_id)
        .where(jobs.c.agent == agent, jobs.c.status.in_([JobStatus.SUCCEEDED, JobStatus.FAILED]))
        .order_by(*place, jobs.c.id.desc())
        .ext(distinct_on(*place))
    )
    return [
        JudgedAnswer(
            task_id=row.task_id,
            answer_name=row.answer_name,
            words=row.words,
            body=row.body,
            error_code=None if row.error is None else json.loads(row.error)["code"],
        )
        for row in await connection.execute(query)
    ]


async def judged_agents(connection: AsyncConnection) -> list[str]:
    """Every agent with an ended job, sorted."""
    ended = jobs.c.status.in_([JobStatus.SUCCEEDED, JobStatus.FAILED])
    return list(
        (await connection.execute(select(jobs.c.agent).where(ended).distinct().order_by(jobs.c.agent))).scalars()
    )


def _record(row: RowMapping) -> ResultRecord:
    return ResultRecord(**row)
