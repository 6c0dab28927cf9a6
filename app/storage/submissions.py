"""The rows of submissions and of the answers in them. Every function takes an open transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from answers.submission import Answer
from app.storage.records import SubmissionRecord
from app.storage.tables import answers, submissions


async def insert_submission(connection: AsyncConnection, record: SubmissionRecord) -> None:
    await connection.execute(
        insert(submissions).values(
            id=record.id,
            owner=record.owner,
            agent=record.agent,
            task_id=record.task_id,
            model=record.model,
            run=record.run,
            metadata=json.dumps(record.metadata),
            created_at=record.created_at,
        )
    )


async def insert_answers(connection: AsyncConnection, new: Iterable[Answer]) -> None:
    """Store texts by their hash; one that is known already is left as it is."""
    # In one order for everybody, or two submissions with the same answers could wait for each other.
    rows = sorted({answer.sha256: answer.text for answer in new}.items())
    values = [{"sha256": sha256, "text": content, "words": len(content.split())} for sha256, content in rows]
    await connection.execute(insert(answers).on_conflict_do_nothing(), values)


async def get_submission(connection: AsyncConnection, submission_id: str) -> SubmissionRecord | None:
    row = (await connection.execute(select(submissions).where(submissions.c.id == submission_id))).mappings().first()
    return None if row is None else SubmissionRecord(**{**row, "metadata": json.loads(row["metadata"])})
