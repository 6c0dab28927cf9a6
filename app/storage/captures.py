"""Capture index in PostgreSQL: one immutable row per attempt to capture a page."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, exists, or_, select
from sqlalchemy.dialects.postgresql import insert, psycopg
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.listings import below, equal
from app.storage.tables import captures, page_change_captures, page_changes, result_pages, results
from app.storage.text_cleanup import storable_text
from cache.capture import EVIDENCE_OUTCOMES, Capture
from cache.capture_index import capture_from_json, capture_to_json
from cache.errors import IndexFailed

_EVIDENCE = tuple(sorted(EVIDENCE_OUTCOMES))
_BATCH = 500
_MAX_LOOKUPS = 6
"""Maximum number of lookups at once. The others wait here as long as necessary, not for a pooled connection."""
HIDES, SHOWS = "hides", "shows"
"""Effects of a page change on a capture: it is no longer used for its URL, or is used because of the change."""


class PostgresCaptureIndex:
    """``cache.capture_index.CaptureIndex`` in the database, shared by all workers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lookups = asyncio.Semaphore(_MAX_LOOKUPS)

    async def find(self, key: str, owner: str | None = None) -> Capture | None:
        given = {"digest": key_digest(key), "owner": owner}
        try:
            async with self._lookups, self._database.pooled_connection() as connection:
                for query, constants in _find_queries():
                    found = await (await connection.execute(query, {**constants, **given})).fetchone()
                    if found is not None:
                        return _capture(found[0])
        except DatabaseUnavailable as error:
            raise IndexFailed(str(error)) from error
        return None

    async def newest(self, key: str, owner: str | None = None) -> Capture | None:
        return await self._first(_newest(captures.c.key_sha256 == key_digest(key), _used_for(owner)))

    async def get(self, capture_id: str) -> Capture | None:
        return await self._first(select(captures.c.record).where(captures.c.id == capture_id))

    async def record(self, *added: Capture, synced: bool = True) -> None:
        if added:
            async with self._transaction() as connection:
                await connection.execute(insert(captures), [_row(capture) for capture in added])

    async def restore(self, capture: Capture) -> bool:
        """Write the row of a capture if it is missing or different. Return whether it was written."""
        row = _row(capture)
        stale = or_(*(captures.c[name].is_distinct_from(value) for name, value in row.items() if name != "id"))
        upsert = insert(captures).values(row).on_conflict_do_update(index_elements=["id"], set_=row, where=stale)
        async with self._transaction() as connection:
            return (await connection.execute(upsert.returning(captures.c.id))).first() is not None

    async def captures(self) -> AsyncIterator[Capture]:
        """Yield all captures, ordered by ID."""
        after = ""
        while True:
            query = select(captures.c.record).where(captures.c.id > after).order_by(captures.c.id).limit(_BATCH)
            async with self._transaction() as connection:
                page = [_capture(record) for record in (await connection.execute(query)).scalars()]
            for capture in page:
                yield capture
            if not page:
                return
            after = page[-1].id

    async def _first(self, *queries: Select[str]) -> Capture | None:
        """Return the result of the first query that finds a row."""
        async with self._lookups, self._transaction() as connection:
            for query in queries:
                record = (await connection.execute(query)).scalar_one_or_none()
                if record is not None:
                    return _capture(record)
        return None

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._database.begin() as connection:
                yield connection
        except DatabaseUnavailable as error:
            raise IndexFailed(str(error)) from error


@cache
def _find_queries() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the queries for the newest capture of a key: evidence, evidence of an alias, any attempt.

    Each is SQL with its constants; the other parameters are ``digest`` and ``owner``. They are compiled once, because
    every citation is looked up.
    """
    digest = bindparam("digest", None, Text)
    owner = bindparam("owner", None, Text)
    evidence = captures.c.outcome.in_(_EVIDENCE)
    in_use = and_(
        or_(captures.c.owner.is_(None), captures.c.owner == owner), ~is_excluded(captures.c.id, digest, owner)
    )
    own_first = captures.c.owner.is_(None)
    queries = (
        _newest(captures.c.key_sha256 == digest, evidence, in_use, first=own_first),
        _newest(captures.c.final_key_sha256 == digest, evidence, in_use, first=own_first),
        _newest(captures.c.key_sha256 == digest, in_use),
    )
    dialect, options = psycopg.PGDialect_psycopg(), {"render_postcompile": True}  # type: ignore[no-untyped-call]
    compiled = (query.compile(dialect=dialect, compile_kwargs=options) for query in queries)
    return tuple((str(each), dict(each.params)) for each in compiled)


async def list_captures(
    connection: AsyncConnection,
    *,
    limit: int,
    owner: str | None = None,
    before: str | None = None,
    agent: str | None = None,
    task_id: str | None = None,
    problem: bool | None = None,
    outcome: str | None = None,
) -> Sequence[Capture]:
    """Return captures, newest first.

    ``agent`` and ``task_id`` select the captures that their results used as evidence. ``owner`` selects the captures
    that ``may_see`` allows, and the results of this owner.
    """
    filters = [*below(captures.c.id, before), *equal((captures.c.outcome, outcome))]
    if problem is not None:
        has_evidence = captures.c.outcome.in_(_EVIDENCE)
        filters.append(~has_evidence if problem else has_evidence)
    if owner is not None:
        filters.append(shown_to(owner))
    if agent is not None or task_id is not None:
        used = select(result_pages.c.capture_id).join(results, results.c.id == result_pages.c.result_id)
        of_results = equal((results.c.owner, owner), (results.c.agent, agent), (results.c.task_id, task_id))
        filters.append(captures.c.id.in_(used.where(*of_results)))
    query = select(captures.c.record).where(*filters).order_by(captures.c.id.desc()).limit(limit)
    return [_capture(record) for record in (await connection.execute(query)).scalars()]


async def may_see(connection: AsyncConnection, capture_id: str, *, owner: str) -> bool:
    """Return whether ``owner`` may see a capture.

    An owner may see their own captures of a URL, and the shared ones if one of their results used a
    capture of it, or if they added the URL.
    """
    query = select(captures.c.id).where(captures.c.id == capture_id, shown_to(owner))
    return (await connection.execute(query)).first() is not None


def shown_to(owner: str) -> ColumnElement[bool]:
    judged_by = captures.alias("judged_by")
    query = (
        select(judged_by.c.key_sha256)
        .join(result_pages, result_pages.c.capture_id == judged_by.c.id)
        .join(results, results.c.id == result_pages.c.result_id)
        .where(results.c.owner == owner)
    )
    added = select(page_changes.c.key_sha256).where(page_changes.c.key_owner == owner, page_changes.c.action == "add")
    return and_(_used_for(owner), or_(captures.c.key_sha256.in_(query), captures.c.key_sha256.in_(added)))


def _used_for(owner: str | None) -> ColumnElement[bool]:
    """Return the condition that a capture may be used for the answers of ``owner``."""
    shared = captures.c.owner.is_(None)
    return shared if owner is None else or_(shared, captures.c.owner == owner)


def is_excluded(
    capture_id: ColumnElement[str], key_sha256: ColumnElement[str], owner: ColumnElement[str]
) -> ColumnElement[bool]:
    """Return the condition that a page change excludes a capture from being used for a key, for answers of ``owner``.

    Either the change hides the capture, or it showed the capture and was undone.
    """
    change, undo = page_changes.alias("change"), page_changes.alias("undo")
    undone = exists().where(undo.c.undoes == change.c.id)
    return exists().where(
        page_change_captures.c.key_sha256 == key_sha256,
        page_change_captures.c.capture_id == capture_id,
        change.c.id == page_change_captures.c.change_id,
        or_(change.c.for_owner.is_(None), change.c.for_owner == owner),
        or_(
            and_(page_change_captures.c.effect == HIDES, ~undone), and_(page_change_captures.c.effect == SHOWS, undone)
        ),
    )


def _newest(*conditions: ColumnElement[bool], first: ColumnElement[bool] | None = None) -> Select[str]:
    """Return the query for the newest capture. Those for which ``first`` is false precede the others."""
    newest_first = captures.c.captured_at.desc(), captures.c.id.desc()
    order = newest_first if first is None else (first, *newest_first)
    return select(captures.c.record).where(*conditions).order_by(*order).limit(1)


def _row(capture: Capture) -> dict[str, Any]:
    """Return the row of a capture: its record, and the indexed columns derived from it."""
    return {
        "id": capture.id,
        "key_sha256": key_digest(capture.key),
        "final_key_sha256": None if capture.final_key is None else key_digest(capture.final_key),
        "url": storable_text(capture.url),
        "outcome": capture.outcome,
        "record": storable_text(json.dumps(capture_to_json(capture), ensure_ascii=False)),
        "captured_at": capture.captured_at,
        "owner": capture.owner,
    }


def _capture(record: str) -> Capture:
    return capture_from_json(json.loads(record))


def key_digest(key: str) -> str:
    """Return the SHA-256 under which a key is indexed, because keys can exceed the size of an index entry."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
