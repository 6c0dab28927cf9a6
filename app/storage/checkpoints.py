"""Queries for checkpoints: model replies of a job, stored until the job has a complete result.

Call every function inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Model reply of a job as JSON text. ``key`` is the hash of the request."""

    job_id: str
    key: str
    reply: str
    counted: bool = False
    """Whether a stored result of the job already includes the cost of this reply."""


async def checkpoints_of(connection: AsyncConnection, job_id: str) -> Sequence[Checkpoint]:
    query = select(checkpoints).where(checkpoints.c.job_id == job_id)
    return [Checkpoint(**row) for row in (await connection.execute(query)).mappings()]


async def insert_checkpoints(connection: AsyncConnection, new: Iterable[Checkpoint]) -> None:
    """Store replies. Skip those of jobs that have ended."""
    rows = list(new)
    query = text(
        "INSERT INTO checkpoints (job_id, key, reply)"
        " SELECT new.job_id, new.key, new.reply"
        " FROM unnest(CAST(:job_ids AS text[]), CAST(:keys AS text[]), CAST(:replies AS text[]))"
        " AS new(job_id, key, reply)"
        " JOIN jobs ON jobs.id = new.job_id AND jobs.status IN ('queued', 'running')"
        " ON CONFLICT DO NOTHING"
    )
    await connection.execute(
        query,
        {
            "job_ids": [row.job_id for row in rows],
            "keys": [row.key for row in rows],
            "replies": [row.reply for row in rows],
        },
    )


async def mark_checkpoints_counted(connection: AsyncConnection, job_id: str) -> None:
    """Mark the checkpoints of a job as counted, so its next result does not include their cost again."""
    await connection.execute(update(checkpoints).where(checkpoints.c.job_id == job_id).values(counted=True))


async def delete_checkpoints(connection: AsyncConnection, job_id: str) -> None:
    await connection.execute(delete(checkpoints).where(checkpoints.c.job_id == job_id))
