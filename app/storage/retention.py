"""Queries for retention: removal of old jobs with their results, and of captures that no remaining result uses.

Call every function inside a transaction. Roll it back for a dry run.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import captures


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRows:
    """Numbers of removed rows, IDs of removed captures, and hashes of call records that are no longer needed."""

    jobs: int
    results: int
    submissions: int
    answers: int
    captures: tuple[str, ...]
    calls: tuple[str, ...]
    """SHA-256 of the model call records of the removed results."""
    idempotency_keys: int
    replies: int
    """Entries of the shared reply cache."""


async def remove_old_rows(connection: AsyncConnection, *, before: datetime) -> RemovedRows:
    """Remove jobs that ended before ``before``, with their results and all rows that only they needed.

    Also remove captures older than ``before`` that no remaining result uses as evidence. Queued and running jobs are
    kept at any age.
    """
    # Block concurrent submissions, which could refer to an answer that is being removed.
    await connection.execute(text("LOCK TABLE answers IN SHARE ROW EXCLUSIVE MODE"))

    async def delete(statement: str) -> int:
        return (await connection.execute(text(statement), {"before": before})).rowcount

    await connection.execute(
        text(
            "CREATE TEMPORARY TABLE old_jobs ON COMMIT DROP AS SELECT id FROM jobs"
            " WHERE status IN ('succeeded', 'failed', 'cancelled') AND finished_at < :before"
        ),
        {"before": before},
    )
    calls = await _calls_of_old(connection)
    await delete(
        "DELETE FROM result_pages USING results JOIN old_jobs ON old_jobs.id = results.job_id"
        " WHERE result_pages.result_id = results.id"
    )
    results = await delete("DELETE FROM results USING old_jobs WHERE results.job_id = old_jobs.id")
    jobs = await delete("DELETE FROM jobs USING old_jobs WHERE jobs.id = old_jobs.id")
    submissions = await delete(
        "DELETE FROM submissions WHERE created_at < :before"
        " AND NOT EXISTS (SELECT FROM jobs WHERE jobs.submission_id = submissions.id)"
    )
    answers = await delete(
        "DELETE FROM answers WHERE NOT EXISTS (SELECT FROM jobs WHERE jobs.answer_sha256 = answers.sha256)"
    )
    keys = await delete("DELETE FROM idempotency_keys WHERE created_at < :before")
    replies = await delete("DELETE FROM llm_cache WHERE used_at < :before")
    removed_captures = await connection.execute(
        text(
            "DELETE FROM captures WHERE captured_at < :before"
            " AND NOT EXISTS (SELECT FROM result_pages WHERE result_pages.capture_id = captures.id)"
            # Keep captures that a correction points to. Without them the wrong address would be captured again.
            " AND NOT EXISTS (SELECT FROM page_change_captures WHERE effect = 'shows' AND capture_id = captures.id"
            " AND NOT EXISTS (SELECT FROM page_changes undo WHERE undo.undoes = page_change_captures.change_id))"
            " RETURNING id"
        ),
        {"before": before},
    )
    return RemovedRows(
        jobs=jobs,
        results=results,
        submissions=submissions,
        answers=answers,
        captures=tuple(removed_captures.scalars()),
        calls=calls,
        idempotency_keys=keys,
        replies=replies,
    )


async def _calls_of_old(connection: AsyncConnection) -> tuple[str, ...]:
    hashes: list[str] = []
    query = text("SELECT results.body FROM results JOIN old_jobs ON old_jobs.id = results.job_id")
    async with connection.stream(query) as rows:
        async for (body,) in rows:
            calls = json.loads(body).get("calls")
            if isinstance(calls, dict):
                hashes.append(str(calls["sha256"]))
    return tuple(hashes)


async def body_references(connection: AsyncConnection) -> AsyncIterator[tuple[str, set[str]]]:
    """Yield the ID of each capture and the hashes of the bodies that it refers to."""
    async with connection.stream(captures.select().with_only_columns(captures.c.id, captures.c.record)) as rows:
        async for capture_id, record in rows:
            yield capture_id, {blob["sha256"] for blob in json.loads(record)["blobs"].values()}
