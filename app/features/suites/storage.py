"""Tables of suite runs with their steps, and queries. Call every function inside a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    delete,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.features.suites.records import FIGURES, TRACE, Record, without_trace
from app.storage.listings import equal
from app.storage.records import storable_text
from app.storage.tables import suite_runs, suite_steps


def step_row(record: Record) -> dict[str, Any]:
    """Return the columns of a step. ``record`` and ``trace`` are JSON text."""
    return {
        "position": record["position"],
        "task_id": storable_text(record["task_id"]),
        "status": record["status"],
        **{name: record[name] for name in FIGURES},
        "record": storable_text(json.dumps(without_trace(record), ensure_ascii=False)),
        "trace": storable_text(json.dumps(record.get(TRACE) or {}, ensure_ascii=False)),
    }


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


async def store_steps(connection: AsyncConnection, job_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store rows of ``step_row``. Existing ones are replaced."""
    query = insert(suite_steps)
    replaced = {name: query.excluded[name] for name in rows[0] if name != "position"}
    values = [{"job_id": job_id, **row} for row in rows]
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
    return None if row is None else {**json.loads(row.record), TRACE: json.loads(row.trace)}


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


def parse_records(texts: Iterable[str]) -> list[dict[str, Any]]:
    """Parse records. Blocks for milliseconds per thousand."""
    return [json.loads(text) for text in texts]
