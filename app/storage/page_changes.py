"""Queries for page changes: what users did with cited URLs.

Users can add, correct, delete, flag and review a URL, and undo a change. Each action is one immutable row; an undo is
another row. If a change affects which capture is used for a URL, the affected captures are stored with it (see
``captures.is_excluded``). Call every function inside a transaction.

Cited URLs have a status: dependent leaves, current capture, flags, reviews and corrections. A single SQL query computes
the status and the order of all URLs, so lists of thousands are sorted in the database. Call every function inside a
transaction.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, exists, or_, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.captures import HIDES, SHOWS
from app.storage.listings import below, equal
from app.storage.tables import captures, page_change_captures, page_changes
from cache.capture import EVIDENCE_OUTCOMES, Capture
from cache.capture_index import capture_from_json


class ChangeAction(StrEnum):
    """Action of a user on a cited URL."""

    ADD = "add"
    """Add the URL to a task's list."""
    EDIT = "edit"
    """Correct the address."""
    DELETE = "delete"
    """Remove the URL from the list. Its captures are no longer used."""
    FLAG = "flag"
    """Mark the capture as wrong."""
    UNFLAG = "unflag"
    REVIEW = "review"
    """Accept the capture as it is."""
    UNREVIEW = "unreview"
    UNDO = "undo"
    """Undo an earlier change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChange:
    """Change of a cited URL.

    Attributes:
        page_id: Capture that was current at that time. For an edit: the capture that is used from then on.
        by: Name that the user entered.
        key_owner: Owner of the API key that was used.
        for_owner: The change affects the answers of this owner only. None: those of all owners.
        undoes: ID of the change that this one undoes.
        undone_by: ID of the change that undoes this one.
    """

    id: str
    action: ChangeAction
    key_sha256: str
    url: str
    to_url: str | None = None
    task_id: str | None = None
    page_id: str | None = None
    reason: str
    by: str
    key_owner: str
    for_owner: str | None
    created_at: datetime
    undoes: str | None = None
    undone_by: str | None = None


async def insert_change(
    connection: AsyncConnection, change: PageChange, *, hides: Iterable[str] = (), shows: Iterable[str] = ()
) -> bool:
    """Store a change, with the captures that it hides and those that are used because of it.

    Return False, and store nothing, if it undoes a change that is already undone.
    """
    row = dataclasses.asdict(change)
    del row["undone_by"]
    query = insert(page_changes).values(row).on_conflict_do_nothing(constraint="undone_once")
    if (await connection.execute(query.returning(page_changes.c.id))).first() is None:
        return False
    await insert_effects(connection, change, {**dict.fromkeys(hides, HIDES), **dict.fromkeys(shows, SHOWS)})
    return True


async def insert_effects(connection: AsyncConnection, change: PageChange, effects: Mapping[str, str]) -> None:
    """Record the effects of a change on captures. They end when the change is undone."""
    rows = [
        {"change_id": change.id, "capture_id": capture, "key_sha256": change.key_sha256, "effect": effect}
        for capture, effect in effects.items()
    ]
    if rows:
        await connection.execute(insert(page_change_captures), rows)


async def newest_change(
    connection: AsyncConnection, key_sha256: str, owner: str | None, *actions: ChangeAction
) -> PageChange | None:
    """Return the newest change of a URL by one of ``actions`` that affects ``owner`` and is not undone, or None."""
    query = _changes().where(
        page_changes.c.key_sha256 == key_sha256,
        page_changes.c.action.in_(actions),
        or_(page_changes.c.for_owner.is_(None), page_changes.c.for_owner == owner),
        ~is_undone(page_changes.c.id),
    )
    row = (await connection.execute(query.order_by(page_changes.c.id.desc()).limit(1))).mappings().first()
    return None if row is None else _change(row)


async def find_change(connection: AsyncConnection, change_id: str) -> PageChange | None:
    row = (await connection.execute(_changes().where(page_changes.c.id == change_id))).mappings().first()
    return None if row is None else _change(row)


async def list_changes(
    connection: AsyncConnection,
    *,
    limit: int,
    before: str | None,
    key_sha256: str | None,
    task_id: str | None,
    owner: str | None,
) -> list[PageChange]:
    """Return changes, newest first. ``before`` is the ID of the last one of the previous page."""
    columns = page_changes.c
    filters = equal((columns.key_sha256, key_sha256), (columns.task_id, task_id), (columns.key_owner, owner))
    query = _changes().where(*filters, *below(columns.id, before)).order_by(columns.id.desc()).limit(limit)
    return [_change(row) for row in (await connection.execute(query)).mappings()]


async def captures_answering(connection: AsyncConnection, key_sha256: str) -> list[str]:
    """Return the IDs of all captures that can be used for a key: its own, and those that were redirected to it."""
    has_key = or_(captures.c.key_sha256 == key_sha256, captures.c.final_key_sha256 == key_sha256)
    return list((await connection.execute(select(captures.c.id).where(has_key))).scalars())


def is_undone(change_id: ColumnElement[str]) -> ColumnElement[bool]:
    undo = page_changes.alias("undo")
    return exists().where(undo.c.undoes == change_id)


def _changes() -> Select[tuple[object, ...]]:
    undo = page_changes.alias("undone_by_change")
    return select(*page_changes.c, undo.c.id.label("undone_by")).outerjoin(undo, undo.c.undoes == page_changes.c.id)


def _change(row: RowMapping) -> PageChange:
    return PageChange(**{**row, "action": ChangeAction(row["action"])})


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
    SELECT k.*, shown.id AS page_id, coalesce(shown.evidence, FALSE) AS evidence,
        coalesce(shown.gone, FALSE) AS gone, latest.id AS latest_id,
        edit.to_url, coalesce(flag.action = 'flag', FALSE) AS flagged, flag.by AS flagged_by,
        coalesce(mark.action = 'review' AND mark.page_id = latest.id, FALSE) AS reviewed, mark.by AS reviewed_by,
        EXISTS (SELECT FROM page_changes c WHERE c.key_sha256 = k.key AND c.action = 'delete' AND {_ACTIVE}) AS dropped
    FROM keys k
    LEFT JOIN LATERAL (
        SELECT p.id, p.outcome IN ({_EVIDENCE}) AS evidence,
            CASE WHEN p.outcome IN ({_EVIDENCE}) THEN FALSE
                ELSE coalesce((p.record::json ->> 'gone')::boolean, FALSE) END AS gone
        FROM captures p
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
    SELECT *, page_id IS NOT NULL AND NOT evidence AS problem, dropped AND page_id IS NULL AS deleted,
        -- A source that does not exist is a failure of the agent: its claims are judged, with nothing to repair.
        page_id IS NOT NULL AND NOT evidence AND NOT reviewed AND (open_leaves > 0 OR NOT gone) AS unsettled
    FROM known),
ranked AS (
    SELECT *, flagged OR unsettled AS needs_work, row_number() OVER (
        ORDER BY (flagged OR unsettled) DESC, problem DESC, leaves DESC, url, key) AS place
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
    tasks: Sequence[str]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFilter:
    """Selection of cited URLs. None selects all. ``key`` selects a single URL, whether it is deleted or not."""

    owner: str | None = None
    agent: str | None = None
    task: str | None = None
    work: bool | None = None
    """Whether the URL needs work."""
    deleted: bool = False
    key: str | None = None


async def list_urls(
    connection: AsyncConnection, chosen: UrlFilter, *, limit: int, after: str | None = None
) -> list[CitedUrl]:
    """Return cited URLs: those that need work first, then by number of leaves.

    ``after`` is the key of the last URL of the previous page.
    """
    query = text(
        f"{_RANKED_URLS} SELECT * FROM ranked WHERE (deleted = :deleted OR CAST(:key AS text) IS NOT NULL)"  # noqa: S608
        " AND (CAST(:work AS boolean) IS NULL OR needs_work = :work)"
        " AND (CAST(:after AS text) IS NULL OR place > (SELECT place FROM ranked WHERE key = :after))"
        " ORDER BY place LIMIT :limit"
    )
    rows = (
        (await connection.execute(query, {**dataclasses.asdict(chosen), "after": after, "limit": limit}))
        .mappings()
        .all()
    )
    capture_ids = {row[name] for row in rows for name in ("page_id", "latest_id")}
    cited_captures = select(captures.c.id, captures.c.record).where(captures.c.id.in_(capture_ids - {None}))
    records = {row.id: capture_from_json(json.loads(row.record)) for row in await connection.execute(cited_captures)}
    cited = []
    for row in rows:
        fields: dict[str, Any] = {field.name: row.get(field.name) for field in dataclasses.fields(CitedUrl)}
        fields |= {"page": records.get(row["page_id"]), "latest": records.get(row["latest_id"])}
        cited.append(CitedUrl(**fields))
    return cited


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
    connection: AsyncConnection, keys: list[str], *, limit: int, owner: str | None
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
