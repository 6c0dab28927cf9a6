"""Queries for page changes: what users did with cited URLs.

Users can add, correct, delete, flag and review a URL, and undo a change. Each action is one immutable row; an undo is
another row. If a change affects which capture is used for a URL, the affected captures are stored with it (see
``captures.is_excluded``). Call every function inside a transaction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, RowMapping, Select, exists, insert, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.captures import HIDES, SHOWS
from app.storage.listings import below, equal
from app.storage.tables import captures, page_change_captures, page_changes


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
) -> None:
    """Store a change, with the captures that it hides and those that are used because of it."""
    row = dataclasses.asdict(change)
    del row["undone_by"]
    await connection.execute(insert(page_changes).values(row))
    effects = {**dict.fromkeys(hides, HIDES), **dict.fromkeys(shows, SHOWS)}
    if effects:
        rows = [
            {"change_id": change.id, "capture_id": capture, "key_sha256": change.key_sha256, "effect": effect}
            for capture, effect in effects.items()
        ]
        await connection.execute(insert(page_change_captures), rows)


async def insert_shown(connection: AsyncConnection, change: PageChange, capture_id: str) -> None:
    """Record that a later capture is used because of a change, until that change is undone."""
    row = {"change_id": change.id, "capture_id": capture_id, "key_sha256": change.key_sha256, "effect": SHOWS}
    await connection.execute(insert(page_change_captures).values(row))


async def active_flag(connection: AsyncConnection, key_sha256: str, owner: str | None) -> PageChange | None:
    """Return the active flag of a URL that affects the answers of ``owner``, or None."""
    actions = (ChangeAction.FLAG, ChangeAction.UNFLAG, ChangeAction.REVIEW)
    query = _changes().where(
        page_changes.c.key_sha256 == key_sha256,
        page_changes.c.action.in_(actions),
        _affects(owner),
        ~is_undone(page_changes.c.id),
    )
    row = (await connection.execute(query.order_by(page_changes.c.id.desc()).limit(1))).mappings().first()
    return None if row is None or row["action"] != ChangeAction.FLAG else _change(row)


async def insert_undo(connection: AsyncConnection, undo: PageChange) -> bool:
    """Store an undo. Return False if the change is already undone."""
    row = dataclasses.asdict(undo)
    del row["undone_by"]
    query = upsert(page_changes).values(row).on_conflict_do_nothing(constraint="undone_once")
    return (await connection.execute(query.returning(page_changes.c.id))).first() is not None


async def find_change(connection: AsyncConnection, change_id: str) -> PageChange | None:
    row = (await connection.execute(_changes().where(page_changes.c.id == change_id))).mappings().first()
    return None if row is None else _change(row)


async def list_changes(
    connection: AsyncConnection,
    *,
    limit: int,
    before: str | None = None,
    key_sha256: str | None = None,
    task_id: str | None = None,
    owner: str | None = None,
) -> list[PageChange]:
    """Return changes, newest first. ``before`` is the ID of the last one of the previous page."""
    columns = page_changes.c
    filters = equal((columns.key_sha256, key_sha256), (columns.task_id, task_id), (columns.key_owner, owner))
    query = _changes().where(*filters, *below(columns.id, before)).order_by(columns.id.desc()).limit(limit)
    return [_change(row) for row in (await connection.execute(query)).mappings()]


async def correction_of(connection: AsyncConnection, key_sha256: str, owner: str | None) -> PageChange | None:
    """Return the newest correction of a URL that affects ``owner`` and is not undone, or None."""
    query = _changes().where(
        page_changes.c.key_sha256 == key_sha256,
        page_changes.c.action == ChangeAction.EDIT,
        _affects(owner),
        ~is_undone(page_changes.c.id),
    )
    row = (await connection.execute(query.order_by(page_changes.c.id.desc()).limit(1))).mappings().first()
    return None if row is None else _change(row)


async def captures_answering(connection: AsyncConnection, key_sha256: str) -> list[str]:
    """Return the IDs of all captures that can be used for a key: its own, and those that were redirected to it."""
    has_key = or_(captures.c.key_sha256 == key_sha256, captures.c.final_key_sha256 == key_sha256)
    return list((await connection.execute(select(captures.c.id).where(has_key))).scalars())


def _affects(owner: str | None) -> ColumnElement[bool]:
    """Return the condition that a change affects the answers of ``owner``. None: those of all owners."""
    return or_(page_changes.c.for_owner.is_(None), page_changes.c.for_owner == owner)


def is_undone(change_id: ColumnElement[str]) -> ColumnElement[bool]:
    undo = page_changes.alias("undo")
    return exists().where(undo.c.undoes == change_id)


def _changes() -> Select[tuple[object, ...]]:
    undo = page_changes.alias("undone_by_change")
    return select(*page_changes.c, undo.c.id.label("undone_by")).outerjoin(undo, undo.c.undoes == page_changes.c.id)


def _change(row: RowMapping) -> PageChange:
    return PageChange(**{**row, "action": ChangeAction(row["action"])})
