"""What may be forgotten: work that ended long ago with its results, and captures that no remaining result names.

Every function takes an open transaction; rolled back, it was a rehearsal.
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
class Forgotten:
    """How many rows went, and the captures among them."""

    jobs: int
    results: int
    submissions: int
    answers: int
    captures: tuple[str, ...]
    calls: tuple[str, ...]
    """The hashes of the records of what models were asked, each of which belonged to one of the results."""
    idempotency_keys: int
    replies: int
    """Of models, kept for all workers and not used since."""


async def forget(connection: AsyncConnection, *, before: datetime) -> Forgotten:
    """Remove jobs that ended before then with all their results, what only they needed, and captures of before then
    that no remaining result was judged by. Whatever is queued or running stays, however old."""
    # Nobody may be handing in one of these answers again just now.
    await connection.execute(text("LOCK TABLE answers IN SHARE ROW EXCLUSIVE MODE"))

    async def gone(statement: str) -> int:
        return (await connection.execute(text(statement), {"before": before})).rowcount

    await connection.execute(
        text(
            "CREATE TEMPORARY TABLE old_jobs ON COMMIT DROP AS SELECT id FROM jobs"
            " WHERE status IN ('succeeded', 'failed', 'cancelled') AND finished_at < :before"
        ),
        {"before": before},
    )
    calls = await _calls_of_old(connection)
    await gone(
        "DELETE FROM result_pages USING results JOIN old_jobs ON old_jobs.id = results.job_id"
        " WHERE result_pages.result_id = results.id"
    )
    results = await gone("DELETE FROM results USING old_jobs WHERE results.job_id = old_jobs.id")
    jobs = await gone("DELETE FROM jobs USING old_jobs WHERE jobs.id = old_jobs.id")
    submissions = await gone(
        "DELETE FROM submissions WHERE created_at < :before"
        " AND NOT EXISTS (SELECT FROM jobs WHERE jobs.submission_id = submissions.id)"
    )
    answers = await gone(
        "DELETE FROM answers WHERE NOT EXISTS (SELECT FROM jobs WHERE jobs.answer_sha256 = answers.sha256)"
    )
    keys = await gone("DELETE FROM idempotency_keys WHERE created_at < :before")
    replies = await gone("DELETE FROM kept_replies WHERE used_at < :before")
    unused = await connection.execute(
        text(
            "DELETE FROM captures WHERE captured_at < :before"
            " AND NOT EXISTS (SELECT FROM result_pages WHERE result_pages.capture_id = captures.id)"
            # Somebody's correction stands: without this the wrong address would be looked at again.
            " AND NOT EXISTS (SELECT FROM page_change_captures WHERE effect = 'shows' AND capture_id = captures.id"
            " AND NOT EXISTS (SELECT FROM page_changes undo WHERE undo.undoes = page_change_captures.change_id))"
            " RETURNING id"
        ),
        {"before": before},
    )
    return Forgotten(
        jobs=jobs,
        results=results,
        submissions=submissions,
        answers=answers,
        captures=tuple(unused.scalars()),
        calls=calls,
        idempotency_keys=keys,
        replies=replies,
    )


async def _calls_of_old(connection: AsyncConnection) -> tuple[str, ...]:
    found: list[str] = []
    query = text("SELECT results.body FROM results JOIN old_jobs ON old_jobs.id = results.job_id")
    async with connection.stream(query) as rows:
        async for (body,) in rows:
            calls = json.loads(body).get("calls")
            if isinstance(calls, dict):
                found.append(str(calls["sha256"]))
    return tuple(found)


async def bodies_named(connection: AsyncConnection) -> AsyncIterator[tuple[str, set[str]]]:
    """Each capture's id, and the hashes of the bodies that its record names."""
    async with connection.stream(captures.select().with_only_columns(captures.c.id, captures.c.record)) as rows:
        async for capture_id, record in rows:
            yield capture_id, {blob["sha256"] for blob in json.loads(record)["blobs"].values()}
