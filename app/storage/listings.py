"""Filters of lists, and the list of submissions. Call every function inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.records import JobKind, JobStatus
from app.storage.tables import jobs, submissions


def equal(*pairs: tuple[ColumnElement[Any], Any]) -> list[ColumnElement[bool]]:
    """Return a condition ``column == value`` for each pair whose value is not None."""
    return [column == value for column, value in pairs if value is not None]


def below(column: ColumnElement[Any], limit: Any) -> list[ColumnElement[bool]]:
    """Return the condition ``column < limit``; none if the limit is None."""
    return [] if limit is None else [column < limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilter:
    """Filter of a list. None: no restriction. ``until`` is exclusive."""

    owner: str | None = None
    agent: str | None = None
    task_id: str | None = None
    run: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def of_owner(self, owner: str | None) -> ListFilter:
        """Return the filter for one owner; None: for all owners."""
        return replace(self, owner=owner)

    def conditions(self, table: Any) -> list[ColumnElement[bool]]:
        """Return the conditions on ``table``, whose rows have a run, or a job with one."""
        found = equal(*((table.c[name], getattr(self, name)) for name in ("owner", "agent", "task_id")))
        if self.run is not None and "run" in table.c:
            found.append(table.c.run == self.run)
        elif self.run is not None:
            found.append(table.c.job_id.in_(select(jobs.c.id).where(jobs.c.run == self.run)))
        if self.since is not None:
            found.append(table.c.created_at >= self.since)
        return [*found, *below(table.c.created_at, self.until)]


ALL = ListFilter()


async def list_submission_ids(
    connection: AsyncConnection,
    chosen: ListFilter,
    *,
    limit: int,
    before: str | None,
    status: JobStatus | None,
) -> list[str]:
    """Return submissions of answers, newest first. ``status``: at least one job has it."""
    judging = select(jobs.c.submission_id).where(
        jobs.c.submission_id == submissions.c.id, jobs.c.kind == JobKind.ANSWER, *equal((jobs.c.status, status))
    )
    conditions = (*chosen.conditions(submissions), *below(submissions.c.id, before))
    query = select(submissions.c.id).where(judging.exists(), *conditions)
    return list((await connection.execute(query.order_by(submissions.c.id.desc()).limit(limit))).scalars())
