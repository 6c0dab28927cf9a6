"""Tables of suite runs and sessions with their steps, and queries. Call every function inside a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    cast,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.listings import below, equal
from app.storage.search import Found, contains
from app.storage.tables import metadata
from app.storage.text_cleanup import storable_text

# Suite runs, and their steps in ``suite_steps``.
suite_runs = Table(
    "suite_runs",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    # Steps of an earlier attempt are reused only if the identity is equal.
    Column("identity", Text, nullable=False),
    Column("total", Integer, nullable=False),
)

suite_steps = Table(
    "suite_steps",
    metadata,
    Column("job_id", Text, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("task_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("element_acc", Float),
    Column("action_f1", Float),
    Column("step_acc", Float),
    # The trace is stored apart from the record because it is long.
    Column("record", Text, nullable=False),
    Column("trace", Text, nullable=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """Step of a suite run. ``record`` and ``trace`` are JSON text."""

    position: int
    task_id: str
    status: str
    element_acc: float | None
    action_f1: float | None
    step_acc: float | None
    record: str
    trace: str

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> StepRow:
        """Convert a step record to a row. The ``trace`` is stored in a separate column."""
        fields = {name: value for name, value in record.items() if name != "trace"}
        return cls(
            position=record["position"],
            task_id=storable_text(record["task_id"]),
            status=record["status"],
            element_acc=record["element_acc"],
            action_f1=record["action_f1"],
            step_acc=record["step_acc"],
            record=storable_text(json.dumps(fields, ensure_ascii=False)),
            trace=storable_text(json.dumps(record.get("trace") or {}, ensure_ascii=False)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMeans:
    """Progress of a run: total steps, finished steps by status, and means over the scored steps."""

    total: int | None
    by_status: Mapping[str, int]
    element_acc: float | None
    action_f1: float | None
    step_acc: float | None


async def begin_run(connection: AsyncConnection, job_id: str, *, identity: str, total: int) -> None:
    """Store the identity and size of a run. Delete the steps of an earlier attempt with a different identity."""
    known = await connection.execute(select(suite_runs.c.identity).where(suite_runs.c.job_id == job_id))
    before = known.scalar_one_or_none()
    if before is not None and before != identity:
        await connection.execute(delete(suite_steps).where(suite_steps.c.job_id == job_id))
    values = {"identity": identity, "total": total}
    query = insert(suite_runs).values(job_id=job_id, **values)
    await connection.execute(query.on_conflict_do_update(index_elements=["job_id"], set_=values))


async def record_texts(connection: AsyncConnection, job_id: str) -> list[str]:
    """Return the records of all steps, without traces, as JSON text. Parse them in a thread."""
    query = select(suite_steps.c.record).where(suite_steps.c.job_id == job_id).order_by(suite_steps.c.position)
    return list((await connection.execute(query)).scalars())


async def store_steps(connection: AsyncConnection, job_id: str, rows: Sequence[StepRow]) -> None:
    """Store steps. Existing rows are replaced."""
    query = insert(suite_steps)
    names = ("task_id", "status", "element_acc", "action_f1", "step_acc", "record", "trace")
    replaced = {name: query.excluded[name] for name in names}
    values = [
        {"job_id": job_id, "position": row.position, **{name: getattr(row, name) for name in names}} for row in rows
    ]
    await connection.execute(query.on_conflict_do_update(index_elements=["job_id", "position"], set_=replaced), values)


async def list_steps(
    connection: AsyncConnection,
    job_id: str,
    *,
    limit: int,
    after: int | None = None,
    status: str | None = None,
    task_id: str | None = None,
    success: bool | None = None,
) -> list[dict[str, Any]]:
    """Return records without traces, by position. ``after`` is the position of the last one of the previous page."""
    filters = equal((suite_steps.c.job_id, job_id), (suite_steps.c.status, status), (suite_steps.c.task_id, task_id))
    if after is not None:
        filters.append(suite_steps.c.position > after)
    if success is not None:
        filters.append(suite_steps.c.step_acc == float(success))
    query = select(suite_steps.c.record).where(*filters).order_by(suite_steps.c.position).limit(limit)
    return [json.loads(text) for text in (await connection.execute(query)).scalars()]


async def get_step(connection: AsyncConnection, job_id: str, position: int) -> dict[str, Any] | None:
    """Return one record with its ``trace``, or None."""
    query = select(suite_steps.c.record, suite_steps.c.trace).where(
        suite_steps.c.job_id == job_id, suite_steps.c.position == position
    )
    row = (await connection.execute(query)).first()
    return None if row is None else parse_steps([(row.record, row.trace)])[0]


async def means_of(connection: AsyncConnection, job_id: str) -> StepMeans:
    """Return the progress and the means of a run."""
    total = await connection.execute(select(suite_runs.c.total).where(suite_runs.c.job_id == job_id))
    counted = await connection.execute(
        select(suite_steps.c.status, func.count()).where(suite_steps.c.job_id == job_id).group_by(suite_steps.c.status)
    )
    columns = (suite_steps.c.element_acc, suite_steps.c.action_f1, suite_steps.c.step_acc)
    means = await connection.execute(select(*map(func.avg, columns)).where(suite_steps.c.job_id == job_id))
    element_acc, action_f1, step_acc = means.one()
    return StepMeans(
        total=total.scalar_one_or_none(),
        by_status={str(status): int(count) for status, count in counted},
        element_acc=element_acc,
        action_f1=action_f1,
        step_acc=step_acc,
    )


# Sessions, in which a client answers the questions of steps one after another.
suite_sessions = Table(
    "suite_sessions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("suite", Text, nullable=False),
    Column("options", Text, nullable=False),
    # The tasks in the order of the session, and where the data contain them.
    Column("tasks", Text, nullable=False),
    Column("steps_total", Integer, nullable=False),
    Column("state", Text, nullable=False),
    # Number of answers so far. An answer is stored only if no other one was stored in the meantime.
    Column("turn", Integer, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False),
    Index("suite_sessions_by_owner", "owner", "suite", "id"),
)

suite_session_steps = Table(
    "suite_session_steps",
    metadata,
    Column("session_id", Text, ForeignKey("suite_sessions.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("record", Text, nullable=False),
    Column("trace", Text, nullable=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """Session. ``options``, ``tasks`` and ``state`` are JSON text. ``turn`` counts its answers."""

    id: str
    owner: str
    suite: str
    options: str
    tasks: str
    steps_total: int
    state: str
    turn: int
    created_at: datetime
    updated_at: datetime


async def create_session(connection: AsyncConnection, row: SessionRow) -> None:
    await connection.execute(insert(suite_sessions).values({name: getattr(row, name) for name in row.__slots__}))


async def get_session(connection: AsyncConnection, id: str, *, suite: str, owner: str | None) -> SessionRow | None:
    """Return a session, or None. ``owner`` restricts the query to the sessions of one owner."""
    rows = await _sessions(connection, [suite_sessions.c.id == id, suite_sessions.c.suite == suite], owner, 1)
    return rows[0] if rows else None


async def list_sessions(
    connection: AsyncConnection, *, suite: str, owner: str | None, limit: int, before: str | None
) -> list[SessionRow]:
    """Return sessions, newest first."""
    filters = [suite_sessions.c.suite == suite, *below(suite_sessions.c.id, before)]
    return await _sessions(connection, filters, owner, limit)


async def _sessions(
    connection: AsyncConnection, filters: list[ColumnElement[bool]], owner: str | None, limit: int
) -> list[SessionRow]:
    filters += equal((suite_sessions.c.owner, owner))
    query = select(suite_sessions).where(*filters).order_by(suite_sessions.c.id.desc()).limit(limit)
    return [SessionRow(**row) for row in (await connection.execute(query)).mappings()]


async def search_sessions(connection: AsyncConnection, words: str, limit: int, owner: str | None) -> Sequence[Found]:
    """Return the sessions whose id or run contains ``words``, newest first."""
    run = cast(suite_sessions.c.options, JSONB)["run"].astext
    rows = await _sessions(connection, [or_(contains(suite_sessions.c.id, words), contains(run, words))], owner, limit)
    return [
        Found(
            kind="session",
            id=f"{row.suite}/{row.id}",
            label=json.loads(row.options).get("run") or row.id,
            detail=row.suite,
        )
        for row in rows
    ]


async def advance_session(
    connection: AsyncConnection,
    id: str,
    *,
    turn: int,
    state: str,
    now: datetime,
    records: Mapping[int, Mapping[str, Any]],
) -> bool:
    """Store the state after answer number ``turn`` and the records of finished steps by number.

    Returns False, and stores nothing, if the session already has this answer.
    """
    moved = await connection.execute(
        update(suite_sessions)
        .where(suite_sessions.c.id == id, suite_sessions.c.turn == turn - 1)
        .values(turn=turn, state=state, updated_at=now)
    )
    if moved.rowcount != 1:
        return False
    await store_session_steps(connection, id, records)
    return True


async def store_session_steps(connection: AsyncConnection, id: str, records: Mapping[int, Mapping[str, Any]]) -> None:
    values = [
        {"session_id": id, "number": number, "record": row.record, "trace": row.trace}
        for number, row in ((number, StepRow.of(record)) for number, record in records.items())
    ]
    if values:
        await connection.execute(insert(suite_session_steps), values)


async def session_record_texts(connection: AsyncConnection, id: str) -> list[str]:
    """Return the records of all finished steps without traces, in order, as JSON text. Parse them in a thread."""
    query = (
        select(suite_session_steps.c.record)
        .where(suite_session_steps.c.session_id == id)
        .order_by(suite_session_steps.c.number)
    )
    return list((await connection.execute(query)).scalars())


async def session_steps(
    connection: AsyncConnection, id: str, *, limit: int, after: int | None
) -> list[tuple[str, str]]:
    """Return (record, trace) of finished steps by number, as JSON text. Parse them in a thread."""
    query = select(suite_session_steps.c.record, suite_session_steps.c.trace).where(
        suite_session_steps.c.session_id == id, suite_session_steps.c.number > (-1 if after is None else after)
    )
    rows = await connection.execute(query.order_by(suite_session_steps.c.number).limit(limit))
    return [(row.record, row.trace) for row in rows]


def parse_steps(rows: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Parse records with their ``trace``. Blocks for milliseconds per step."""
    return [{**json.loads(record), "trace": json.loads(trace)} for record, trace in rows]


def parse_records(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Parse records. Blocks for milliseconds per thousand."""
    return [json.loads(text) for text in texts]


async def delete_session(connection: AsyncConnection, id: str) -> None:
    await connection.execute(delete(suite_sessions).where(suite_sessions.c.id == id))
