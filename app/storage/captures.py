"""Capture index in PostgreSQL: one immutable row per attempt to capture a page.

Capture locks and host pacing are for all workers on one database. Only one worker captures a page at a time; the others
wait for its capture. Visits to one host are spaced out. Both are rows with an expiry time by the database's clock. A
lock that is not renewed expires after ``LOCK_TTL_S``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from uuid import uuid4

import structlog
from sqlalchemy import ColumnElement, Select, Text, and_, bindparam, delete, exists, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert, psycopg
from sqlalchemy.ext.asyncio import AsyncConnection

from app.async_tools import cancellable_sleep
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.listings import below, equal
from app.storage.records import storable_text
from app.storage.tables import (
    capture_locks,
    captures,
    host_visits,
    page_change_captures,
    page_changes,
    result_pages,
    results,
)
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
        return await self._find_one(_newest(captures.c.key_sha256 == key_digest(key), _used_for(owner)))

    async def get(self, capture_id: str) -> Capture | None:
        return await self._find_one(select(captures.c.record).where(captures.c.id == capture_id))

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

    async def _find_one(self, query: Select[str]) -> Capture | None:
        async with self._lookups, self._transaction() as connection:
            record = (await connection.execute(query)).scalar_one_or_none()
        return None if record is None else _capture(record)

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
    owner: str | None,
    before: str | None,
    agent: str | None,
    task_id: str | None,
    problem: bool | None,
    outcome: str | None,
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


LOCK_TTL_S = 8.0
RENEW_S = 2.0
_POLL_S = 0.2
_ACQUIRE_TIMEOUT_S = 300.0
_DELETE_AFTER_S = 3600.0
_MAX_GAP_S = 60.0
_log = structlog.get_logger(__name__)


class PostgresCaptureLocks:
    """Locks of page captures. Implements ``cache.pages.CaptureLocks`` for all processes on one database."""

    def __init__(self, database: Database, *, ttl_s: float = LOCK_TTL_S) -> None:
        """``ttl_s``: time to live of a lock. It is renewed every ``RENEW_S`` while it is held."""
        self._database = database
        self._ttl_s = ttl_s
        self._held: dict[str, str] = {}
        """Digests of the keys of the locks that this process holds, by holder."""
        self._renewing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def lock(self, key: str) -> AsyncIterator[None]:
        hashed, holder = key_digest(key), uuid4().hex
        await self._acquire(hashed, holder)
        self._held[holder] = hashed
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew_held(), name="capture locks")
        try:
            yield
        finally:
            self._held.pop(holder, None)
            await asyncio.shield(self._release(hashed, holder))

    async def _acquire(self, hashed: str, holder: str) -> None:
        try:
            async with asyncio.timeout(_ACQUIRE_TIMEOUT_S):
                while not await self._try_acquire(hashed, holder):  # noqa: ASYNC110 - other processes release the lock
                    await asyncio.sleep(_POLL_S)
        except TimeoutError as late:
            raise IndexFailed(
                f"Another worker has been capturing this page for {_ACQUIRE_TIMEOUT_S:g} s: retry later"
            ) from late
        except DatabaseUnavailable as absent:
            raise IndexFailed(str(absent)) from absent

    async def _try_acquire(self, hashed: str, holder: str) -> bool:
        until = func.clock_timestamp() + _interval(self._ttl_s)
        row = {"key_sha256": hashed, "holder": holder, "expires_at": until}
        acquire = (
            insert(capture_locks)
            .values(row)
            .on_conflict_do_update(
                index_elements=["key_sha256"],
                set_={"holder": holder, "expires_at": until},
                where=capture_locks.c.expires_at < func.clock_timestamp(),
            )
        )
        async with self._database.begin() as connection:
            return (await connection.execute(acquire.returning(capture_locks.c.holder))).first() is not None

    async def _renew_held(self) -> None:
        """Renew all locks of this process in one statement, until it holds none."""
        until = func.clock_timestamp() + _interval(self._ttl_s)
        while True:
            await cancellable_sleep(RENEW_S)
            if not self._held:
                return
            holders, hashed = list(self._held), list(self._held.values())
            renew = (
                update(capture_locks)
                .where(capture_locks.c.key_sha256.in_(hashed), capture_locks.c.holder.in_(holders))
                .values(expires_at=until)
                .returning(capture_locks.c.holder)
            )
            try:
                async with self._database.begin() as connection:
                    renewed = set((await connection.execute(renew)).scalars())
            except DatabaseUnavailable:
                continue  # retry before the locks expire
            for holder in set(holders) - renewed:
                if (lost := self._held.pop(holder, None)) is not None:
                    # The lock has expired. The worst case is a second capture of the page.
                    _log.warning("capture lock lost", key_sha256=lost)

    async def _release(self, hashed: str, holder: str) -> None:
        is_own_lock = (capture_locks.c.key_sha256 == hashed) & (capture_locks.c.holder == holder)
        forgotten = capture_locks.c.expires_at < func.clock_timestamp() - _interval(_DELETE_AFTER_S)
        try:
            async with self._database.begin() as connection:
                await connection.execute(delete(capture_locks).where(or_(is_own_lock, forgotten)))
        except DatabaseUnavailable:
            _log.warning("capture lock not released", key_sha256=hashed)  # the lock expires


class PostgresHostPacing:
    """Pacing of visits to hosts. Implements ``cache.pacing.HostPacing`` for all processes on one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def wait(self, host: str, interval_s: float) -> None:
        """Reserve the next time slot of ``host`` and wait for it. If the database is unavailable, do not wait."""
        gap = _interval(min(interval_s, _MAX_GAP_S))
        now = func.clock_timestamp()
        reserve = (
            insert(host_visits)
            .values(host=host, next_at=now + gap)
            .on_conflict_do_update(
                index_elements=["host"], set_={"next_at": func.greatest(host_visits.c.next_at, now) + gap}
            )
            .returning(func.extract("epoch", host_visits.c.next_at - gap - func.clock_timestamp()))
        )
        delete_old = delete(host_visits).where(host_visits.c.next_at < now - _interval(_DELETE_AFTER_S))
        try:
            async with self._database.begin() as connection:
                wait_s = float((await connection.execute(reserve)).scalar_one())
                await connection.execute(delete_old)
        except DatabaseUnavailable:
            return  # storing the capture will fail and report the error
        await asyncio.sleep(max(0.0, wait_s))


def _interval(seconds: float) -> object:
    return text(f"interval '{float(seconds)!r} seconds'")
