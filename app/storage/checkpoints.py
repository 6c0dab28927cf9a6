"""The rows of checkpoints: what a model replied to a job, kept until the job has ended well.

Every function takes an open transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """One reply, as JSON text, under the hash of its request."""

    job_id: str
    key: str
    reply: str
    counted: bool = False
    """Whether a stored result of the job has its cost."""


async def checkpoints_of(connection: AsyncConnection, job_id: str) -> Sequence[Checkpoint]:
    query = select(checkpoints).where(checkpoints.c.job_id == job_id)
    return [Checkpoint(**row) for row in (await connection.execute(query)).mappings()]


async def insert_checkpoints(connection: AsyncConnection, new: Iterable[Checkpoint]) -> None:
    """Store replies; those of jobs that have ended meanwhile are of no use and left out."""
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


async def count_checkpoints(connection: AsyncConnection, job_id: str) -> None:
    """A result with the cost of all these is being stored: the next result shall not say it again."""
    await connection.execute(update(checkpoints).where(checkpoints.c.job_id == job_id).values(counted=True))


async def forget_checkpoints(connection: AsyncConnection, job_id: str) -> None:
    await connection.execute(delete(checkpoints).where(checkpoints.c.job_id == job_id))
