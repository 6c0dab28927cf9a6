"""What people did with cited URLs: added, corrected, taken off the list, flagged, looked over; and took back.

One row for each, never changed; taking one back is another row. A change that bears on which capture answers for a URL
names those captures (``captures.put_aside``). Every function takes an open transaction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, RowMapping, Select, and_, exists, insert, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.captures import HIDES, SHOWS
from app.storage.tables import captures, page_change_captures, page_changes


class ChangeAction(StrEnum):
    """What somebody did with a URL."""

    ADD = "add"
    """Put it on a task's list."""
    EDIT = "edit"
    """Said which address it was meant to be."""
    DELETE = "delete"
    """Took it off the list: what was captured of it answers no more."""
    FLAG = "flag"
    """Said that its capture is not what it should be."""
    UNFLAG = "unflag"
    REVIEW = "review"
    """Looked at its capture and left it as it is."""
    UNREVIEW = "unreview"
    UNDO = "undo"
    """Took back an earlier change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChange:
    """One row. ``page_id`` is the capture that was shown then (of an edit: the one that answers from then on),
    ``undoes`` the change that this one takes back, ``undone_by`` the one that takes back this one. ``by`` is
    what they call themselves, ``key_owner`` whose key it was."""

    id: str
    action: ChangeAction
    key_sha256: str
    url: str
    to_url: str | None = None
    task_id: str | None = None
    page_id: str | None = None
    why: str
    by: str
    key_owner: str
    created_at: datetime
    undoes: str | None = None
    undone_by: str | None = None


async def insert_change(
    connection: AsyncConnection, change: PageChange, *, hides: Iterable[str] = (), shows: Iterable[str] = ()
) -> None:
    """Keep a change, with the captures that it hides and those that answer because of it."""
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
    """Note that a capture made later answers because of a change, and no longer than that stands."""
    row = {"change_id": change.id, "capture_id": capture_id, "key_sha256": change.key_sha256, "effect": SHOWS}
    await connection.execute(insert(page_change_captures).values(row))


async def standing_flag(connection: AsyncConnection, key_sha256: str) -> PageChange | None:
    """The flag on a URL that nobody has taken down; None where there is none."""
    marks = (ChangeAction.FLAG, ChangeAction.UNFLAG, ChangeAction.REVIEW)
    query = _changes().where(
        page_changes.c.key_sha256 == key_sha256, page_changes.c.action.in_(marks), ~is_undone(page_changes.c.id)
    )
    row = (await connection.execute(query.order_by(page_changes.c.id.desc()).limit(1))).mappings().first()
    return None if row is None or row["action"] != ChangeAction.FLAG else _change(row)


async def insert_undo(connection: AsyncConnection, undo: PageChange) -> bool:
    """Take back the change that ``undo`` names; False where somebody has already."""
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
    """Newest first; of one URL, or of one task's list."""
    filters: list[ColumnElement[bool]] = []
    if before is not None:
        filters.append(page_changes.c.id < before)
    if key_sha256 is not None:
        filters.append(page_changes.c.key_sha256 == key_sha256)
    if task_id is not None:
        filters.append(page_changes.c.task_id == task_id)
    if owner is not None:
        filters.append(page_changes.c.key_owner == owner)
    query = _changes().where(and_(True, *filters)).order_by(page_changes.c.id.desc()).limit(limit)
    return [_change(row) for row in (await connection.execute(query)).mappings()]


async def correction_of(connection: AsyncConnection, key_sha256: str) -> PageChange | None:
    """The newest correction of a URL that stands."""
    query = _changes().where(
        page_changes.c.key_sha256 == key_sha256,
        page_changes.c.action == ChangeAction.EDIT,
        ~is_undone(page_changes.c.id),
    )
    row = (await connection.execute(query.order_by(page_changes.c.id.desc()).limit(1))).mappings().first()
    return None if row is None else _change(row)


async def captures_answering(connection: AsyncConnection, key_sha256: str) -> list[str]:
    """The ids of all captures that may answer for a key: its own, and those that ended at it."""
    mine = or_(captures.c.key_sha256 == key_sha256, captures.c.final_key_sha256 == key_sha256)
    return list((await connection.execute(select(captures.c.id).where(mine))).scalars())


def is_undone(change_id: ColumnElement[str]) -> ColumnElement[bool]:
    undo = page_changes.alias("undo")
    return exists().where(undo.c.undoes == change_id)


def _changes() -> Select[tuple[object, ...]]:
    undo = page_changes.alias("taken_back")
    return select(*page_changes.c, undo.c.id.label("undone_by")).outerjoin(undo, undo.c.undoes == page_changes.c.id)


def _change(row: RowMapping) -> PageChange:
    return PageChange(**{**row, "action": ChangeAction(row["action"])})
