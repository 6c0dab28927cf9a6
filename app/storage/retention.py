"""Queries for retention: removal of old jobs with their results, and of captures that no remaining result uses.

Call every function inside a transaction. Roll it back for a dry run.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import captures


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedJobs:
    """Numbers of removed rows, and hashes of call records that are no longer needed."""

    jobs: int
    results: int
    answers: int
    calls: tuple[str, ...]
    """SHA-256 of the model call records of the removed results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedRows(RemovedJobs):
    """``RemovedJobs`` with further numbers of removed rows, and IDs of removed captures."""

    submissions: int
    captures: tuple[str, ...]
    idempotency_keys: int
    replies: int
    """Entries of the shared reply cache."""


async def remove_old_rows(connection: AsyncConnection, *, before: datetime) -> RemovedRows:
    """Remove jobs that ended before ``before``, with their results and all rows that only they needed.

    Also remove captures older than ``before`` that no remaining result uses as evidence. Queued and running jobs are
    kept at any age.
    """

    async def delete(statement: str) -> int:
        return (await connection.execute(text(statement), {"before": before})).rowcount

    removed = await _remove_jobs(
        connection, "status IN ('succeeded', 'failed', 'cancelled') AND finished_at < :before", {"before": before}
    )
    submissions = await delete(
        "DELETE FROM submissions WHERE created_at < :before"
        " AND NOT EXISTS (SELECT FROM jobs WHERE jobs.submission_id = submissions.id)"
    )
    await delete("DELETE FROM webhook_deliveries WHERE created_at < :before AND state <> 'pending'")
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
        **asdict(removed),
        submissions=submissions,
        captures=tuple(removed_captures.scalars()),
        idempotency_keys=keys,
        replies=replies,
    )


async def remove_submission(connection: AsyncConnection, submission_id: str) -> RemovedJobs:
    """Remove a submission with its jobs and their results. No job of it may be queued or running."""
    removed = await _remove_jobs(connection, "submission_id = :submission", {"submission": submission_id})
    for statement in (
        "DELETE FROM budget_reservations WHERE budget_id = :submission",
        "DELETE FROM budgets WHERE id = :submission",
        "DELETE FROM idempotency_keys USING submissions WHERE submissions.id = :submission"
        " AND idempotency_keys.owner = submissions.owner AND position(:submission IN response) > 0",
        "DELETE FROM submissions WHERE id = :submission",
    ):
        await connection.execute(text(statement), {"submission": submission_id})
    return removed


async def reviewed_results(connection: AsyncConnection, submission_id: str) -> list[str]:
    """Return the results of a submission that have overrides."""
    query = text(
        "SELECT DISTINCT results.id FROM results JOIN jobs ON jobs.id = results.job_id"
        " JOIN overrides ON overrides.result_id = results.id WHERE jobs.submission_id = :submission ORDER BY results.id"
    )
    return list((await connection.execute(query, {"submission": submission_id})).scalars())


async def _remove_jobs(connection: AsyncConnection, condition: str, values: Mapping[str, Any]) -> RemovedJobs:
    """Remove the jobs that meet an SQL condition, with their results and the answers that only they needed."""
    # Block concurrent submissions, which could refer to an answer that is being removed.
    await connection.execute(text("LOCK TABLE answers IN SHARE ROW EXCLUSIVE MODE"))
    chosen = f"CREATE TEMPORARY TABLE old_jobs ON COMMIT DROP AS SELECT id, answer_sha256 FROM jobs WHERE {condition}"  # noqa: S608
    await connection.execute(text(chosen), values)
    calls = await _calls_of_old(connection)

    async def delete(statement: str) -> int:
        return (await connection.execute(text(statement))).rowcount

    await delete(
        "DELETE FROM result_pages USING results JOIN old_jobs ON old_jobs.id = results.job_id"
        " WHERE result_pages.result_id = results.id"
    )
    results = await delete("DELETE FROM results USING old_jobs WHERE results.job_id = old_jobs.id")
    jobs = await delete("DELETE FROM jobs USING old_jobs WHERE jobs.id = old_jobs.id")
    answers = await delete(
        "DELETE FROM answers USING (SELECT DISTINCT answer_sha256 FROM old_jobs) old"
        " WHERE answers.sha256 = old.answer_sha256"
        " AND NOT EXISTS (SELECT FROM jobs WHERE jobs.answer_sha256 = answers.sha256)"
    )
    return RemovedJobs(jobs=jobs, results=results, answers=answers, calls=calls)


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
