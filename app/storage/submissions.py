"""Queries for submissions, which ``app.jobs.filing`` inserts. Call every function inside a transaction."""

from __future__ import annotations

import json

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.records import SubmissionRecord
from app.storage.tables import submissions


async def get_submission(
    connection: AsyncConnection, submission_id: str, *, owner: str | None = None
) -> SubmissionRecord | None:
    """Return one submission, or None. ``owner`` limits the query to one owner."""
    query = select(submissions).where(submissions.c.id == submission_id)
    if owner is not None:
        query = query.where(submissions.c.owner == owner)
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else SubmissionRecord(**{**row, "metadata": json.loads(row["metadata"])})


async def set_budget(
    connection: AsyncConnection, submission_id: str, budget_usd: float | None, *, owner: str | None = None
) -> None:
    """Set the budget of a submission. ``owner`` limits the update to one owner."""
    query = update(submissions).where(submissions.c.id == submission_id).values(budget_usd=budget_usd)
    await connection.execute(query if owner is None else query.where(submissions.c.owner == owner))
