"""Queries for cited URLs with their status: dependent leaves, current capture, flags, reviews and corrections.

A single SQL query computes the status and the order of all URLs, so lists of thousands are sorted in the database. Call
every function inside a transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import captures
from cache.capture import EVIDENCE_OUTCOMES, Capture
from cache.capture_index import capture_from_json

_PARAMETERS = ", ".join(f"CAST(:{name} AS text) AS {name}" for name in ("owner", "agent", "task", "key"))
_EVIDENCE = ", ".join(f"'{outcome.value}'" for outcome in sorted(EVIDENCE_OUTCOMES))

_EXCLUDED = """EXISTS (
    SELECT FROM page_change_captures e JOIN page_changes c ON c.id = e.change_id
    WHERE e.key_sha256 = k.key AND e.capture_id = p.id
    AND (c.for_owner IS NULL OR c.for_owner = (SELECT owner FROM args))
    AND (e.effect = 'hides') <> EXISTS (SELECT FROM page_changes u WHERE u.undoes = c.id))"""
"""Condition that a page change excludes capture ``p`` from key ``k``; the same as ``captures.is_excluded``."""

_ACTIVE = """(NOT EXISTS (SELECT FROM page_changes u WHERE u.undoes = c.id)
    AND (c.for_owner IS NULL OR c.for_owner = (SELECT owner FROM args)))"""
"""Condition that change ``c`` is not undone and affects the answers of the caller. For a caller who sees all owners,
these are the changes that affect all answers.
"""

# The same rule as ``captures.may_see``.
_MAY_SEE = """(p.owner IS NULL OR p.owner = (SELECT owner FROM args)) AND
    ((SELECT owner FROM args) IS NULL OR p.key_sha256 IN (
    SELECT j.key_sha256 FROM captures j JOIN result_pages rp ON rp.capture_id = j.id
    JOIN results r ON r.id = rp.result_id WHERE r.owner = (SELECT owner FROM args)
    UNION ALL SELECT a.key_sha256 FROM page_changes a
    WHERE a.action = 'add' AND a.key_owner = (SELECT owner FROM args)))"""

_NEWEST = """newest AS (
    SELECT DISTINCT ON (owner, agent, task_id, answer_name) id, job_id, owner, agent, task_id, answer_name, created_at
    FROM results WHERE kind = 'answer'
    AND ((SELECT owner FROM args) IS NULL OR owner = (SELECT owner FROM args))
    AND ((SELECT agent FROM args) IS NULL OR agent = (SELECT agent FROM args))
    ORDER BY owner, agent, task_id, answer_name, id DESC)"""

_RANKED_URLS = f"""WITH args AS (SELECT {_PARAMETERS}), {_NEWEST},
cited AS (
    SELECT s.key_sha256 AS key, n.task_id, min(s.url) AS url, sum(s.leaves) AS leaves,
        sum(s.open_leaves) AS open_leaves, count(*) AS answers
    FROM result_sources s JOIN newest n ON n.id = s.result_id GROUP BY s.key_sha256, n.task_id),
added AS (
    SELECT DISTINCT ON (c.key_sha256, c.task_id) c.key_sha256 AS key, c.task_id, c.url FROM page_changes c
    WHERE c.action = 'add' AND (SELECT agent FROM args) IS NULL AND {_ACTIVE}
    AND ((SELECT owner FROM args) IS NULL OR c.key_owner = (SELECT owner FROM args))
    ORDER BY c.key_sha256, c.task_id, c.id DESC),
listed AS (
    SELECT key, task_id, url, leaves, open_leaves, answers, FALSE AS added FROM cited
    UNION ALL SELECT key, task_id, url, 0, 0, 0, TRUE FROM added
    UNION ALL SELECT DISTINCT ON (key_sha256) key_sha256, NULL, url, 0, 0, 0, FALSE FROM captures
    WHERE (SELECT owner FROM args) IS NULL AND (SELECT agent FROM args) IS NULL AND (SELECT task FROM args) IS NULL),
keys AS (
    SELECT key, min(url) AS url, sum(leaves)::int AS leaves, sum(open_leaves)::int AS open_leaves,
        sum(answers)::int AS answers, bool_or(added) AS added,
        coalesce(array_agg(DISTINCT task_id) FILTER (WHERE task_id IS NOT NULL), '{{}}') AS tasks
    FROM listed WHERE ((SELECT task FROM args) IS NULL OR task_id = (SELECT task FROM args))
    AND ((SELECT key FROM args) IS NULL OR key = (SELECT key FROM args)) GROUP BY key),
known AS (
    SELECT k.*, shown.id AS page_id, coalesce(shown.evidence, FALSE) AS evidence, latest.id AS latest_id,
        edit.to_url, coalesce(flag.action = 'flag', FALSE) AS flagged, flag.by AS flagged_by,
        coalesce(mark.action = 'review' AND mark.page_id = latest.id, FALSE) AS reviewed, mark.by AS reviewed_by,
        EXISTS (SELECT FROM page_changes c WHERE c.key_sha256 = k.key AND c.action = 'delete' AND {_ACTIVE}) AS dropped
    FROM keys k
    LEFT JOIN LATERAL (
        SELECT p.id, p.outcome IN ({_EVIDENCE}) AS evidence FROM captures p
        WHERE (p.key_sha256 = k.key OR p.final_key_sha256 = k.key AND p.outcome IN ({_EVIDENCE}))
        AND NOT {_EXCLUDED} AND {_MAY_SEE}
        ORDER BY p.outcome IN ({_EVIDENCE}) DESC, p.key_sha256 = k.key DESC,
            p.outcome IN ({_EVIDENCE}) AND p.owner IS NOT NULL DESC, p.captured_at DESC, p.id DESC LIMIT 1
    ) shown ON TRUE
    LEFT JOIN LATERAL (
        SELECT p.id FROM captures p WHERE p.key_sha256 = k.key AND NOT {_EXCLUDED} AND {_MAY_SEE}
        ORDER BY p.captured_at DESC, p.id DESC LIMIT 1
    ) latest ON TRUE
    LEFT JOIN LATERAL (
        SELECT c.to_url FROM page_changes c WHERE c.key_sha256 = k.key AND c.action = 'edit' AND {_ACTIVE}
        ORDER BY c.id DESC LIMIT 1
    ) edit ON TRUE
    LEFT JOIN LATERAL (
        SELECT c.* FROM page_changes c
        WHERE c.key_sha256 = k.key AND c.action IN ('flag', 'unflag', 'review') AND {_ACTIVE}
        ORDER BY c.id DESC LIMIT 1
    ) flag ON TRUE
    LEFT JOIN LATERAL (
        SELECT c.* FROM page_changes c WHERE c.key_sha256 = k.key AND c.action IN ('review', 'unreview') AND {_ACTIVE}
        ORDER BY c.id DESC LIMIT 1
    ) mark ON TRUE),
stated AS (
    SELECT *, page_id IS NOT NULL AND NOT evidence AS problem, dropped AND page_id IS NULL AS deleted
    FROM known),
ranked AS (
    SELECT *, flagged OR problem AND NOT reviewed AS needs_work, row_number() OVER (
        ORDER BY (flagged OR problem AND NOT reviewed) DESC, problem DESC, leaves DESC, url, key) AS place
    FROM stated)"""  # noqa: S608 - our own parts


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedUrl:
    """Cited URL with its status.

    Attributes:
        leaves: Number of leaves in the newest results that cite the URL.
        open_leaves: Number of those leaves that were not judged or are undecided.
        page: Capture that is used for the URL, with evidence if any capture has it.
        latest: Newest capture attempt.
        problem: The URL was captured, but no capture is evidence.
        flagged: A user flagged the capture, and it has not been unflagged, reviewed or replaced since.
        reviewed: A user reviewed ``latest``.
        to_url: Corrected address, if a user set one.
    """

    key: str
    url: str
    tasks: tuple[str, ...]
    leaves: int
    open_leaves: int
    answers: int
    added: bool
    deleted: bool
    problem: bool
    flagged: bool
    flagged_by: str | None
    reviewed: bool
    reviewed_by: str | None
    needs_work: bool
    to_url: str | None
    page: Capture | None
    latest: Capture | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUrlCounts:
    """Counts of a task's cited URLs. ``leaves_waiting``: number of leaves that cite a URL that needs work."""

    task_id: str
    urls: int
    problems: int
    flagged: int
    reviewed: int
    needs_work: int
    leaves_waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DependentResult:
    """Newest result of an answer with leaves that cite a URL.

    ``calls`` and ``usd`` are the calls and cost of judging those leaves last time (``usd`` None: unknown).
    """

    result_id: str
    job_id: str
    agent: str
    task_id: str
    answer_name: str
    leaves: int
    open_leaves: int
    calls: int
    usd: float | None
    created_at: datetime


async def list_urls(
    connection: AsyncConnection,
    *,
    limit: int,
    owner: str | None = None,
    agent: str | None = None,
    task_id: str | None = None,
    needs_work: bool | None = None,
    deleted: bool = False,
    after: str | None = None,
    key: str | None = None,
) -> list[CitedUrl]:
    """Return cited URLs: those that need work first, then by number of leaves.

    ``after`` is the key of the last URL of the previous page. ``key`` selects a single URL.
    """
    query = text(
        f"{_RANKED_URLS} SELECT * FROM ranked WHERE (deleted = :deleted OR CAST(:key AS text) IS NOT NULL)"  # noqa: S608
        " AND (CAST(:work AS boolean) IS NULL OR needs_work = :work)"
        " AND (CAST(:after AS text) IS NULL OR place > (SELECT place FROM ranked WHERE key = :after))"
        " ORDER BY place LIMIT :limit"
    )
    filters = {"owner": owner, "agent": agent, "task": task_id, "work": needs_work, "deleted": deleted}
    rows = (await connection.execute(query, {**filters, "after": after, "key": key, "limit": limit})).mappings().all()
    capture_ids = {row[name] for row in rows for name in ("page_id", "latest_id")}
    cited_captures = select(captures.c.id, captures.c.record).where(captures.c.id.in_(capture_ids - {None}))
    records = {row.id: capture_from_json(json.loads(row.record)) for row in await connection.execute(cited_captures)}
    return [_cited(row, records) for row in rows]


async def list_tasks(
    connection: AsyncConnection, *, owner: str | None = None, agent: str | None = None
) -> list[TaskUrlCounts]:
    """Return the tasks that have cited URLs, ordered by ``leaves_waiting``, highest first."""
    query = text(
        f"{_RANKED_URLS} SELECT t.task_id, count(*) AS urls, count(*) FILTER (WHERE r.problem) AS problems,"  # noqa: S608
        " count(*) FILTER (WHERE r.flagged) AS flagged, count(*) FILTER (WHERE r.reviewed) AS reviewed,"
        " count(*) FILTER (WHERE r.needs_work) AS needs_work,"
        " coalesce(sum(t.leaves) FILTER (WHERE r.needs_work), 0)::int AS leaves_waiting"
        " FROM (SELECT key, task_id, sum(leaves) AS leaves FROM listed WHERE task_id IS NOT NULL GROUP BY 1, 2) t"
        " JOIN ranked r USING (key) WHERE NOT r.deleted GROUP BY t.task_id"
        " ORDER BY leaves_waiting DESC, needs_work DESC, t.task_id"
    )
    rows = await connection.execute(query, {"owner": owner, "agent": agent, "task": None, "key": None})
    return [TaskUrlCounts(**row) for row in rows.mappings()]


async def dependents_of(
    connection: AsyncConnection, keys: list[str], *, limit: int, owner: str | None = None
) -> list[DependentResult]:
    """Return the newest results with leaves that cite one of these URLs, most leaves first."""
    query = text(
        f"WITH args AS (SELECT {_PARAMETERS}), {_NEWEST}"  # noqa: S608 - our own parts
        " SELECT n.id AS result_id, n.job_id, n.agent, n.task_id, n.answer_name, n.created_at,"
        " sum(s.leaves)::int AS leaves, sum(s.open_leaves)::int AS open_leaves, sum(s.calls)::int AS calls,"
        " CASE WHEN bool_or(s.usd IS NULL) THEN NULL ELSE sum(s.usd) END AS usd"
        " FROM result_sources s JOIN newest n ON n.id = s.result_id WHERE s.key_sha256 = ANY(:keys) AND s.leaves > 0"
        " GROUP BY n.id, n.job_id, n.agent, n.task_id, n.answer_name, n.created_at"
        " ORDER BY leaves DESC, n.id DESC LIMIT :limit"
    )
    filters = {"owner": owner, "agent": None, "task": None, "key": None, "keys": keys, "limit": limit}
    return [DependentResult(**row) for row in (await connection.execute(query, filters)).mappings()]


def _cited(row: RowMapping, records: Mapping[str, Capture]) -> CitedUrl:
    own: dict[str, Any] = {name: row[name] for name in _UNCHANGED_COLUMNS}
    page, latest = records.get(row["page_id"]), records.get(row["latest_id"])
    return CitedUrl(**own, tasks=tuple(row["tasks"]), page=page, latest=latest)


_UNCHANGED_COLUMNS = (
    "key", "url", "leaves", "open_leaves", "answers", "added", "deleted", "problem", "flagged", "flagged_by",
    "reviewed", "reviewed_by", "needs_work", "to_url",
)  # fmt: skip
