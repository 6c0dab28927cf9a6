"""Filters of lists, and the lists of submissions, agents and runs. Call every function inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, distinct, func, select
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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGroup:
    """Jobs of one agent, or of one run of an agent. ``run`` is None for an agent."""

    agent: str
    run: str | None
    newest_job_id: str
    submissions: int
    answers: int
    """Different answers: pairs of task and answer name."""
    task_ids: tuple[str, ...]
    runs: tuple[str, ...]
    job_counts: dict[str, int]
    first_at: datetime
    last_at: datetime


async def list_job_groups(
    connection: AsyncConnection,
    chosen: ListFilter,
    *,
    by_run: bool,
    limit: int,
    before: str | None = None,
    status: JobStatus | None = None,
) -> list[JobGroup]:
    """Return the agents, or their runs, that have matching jobs, by their newest job. All figures are of these jobs.

    ``before`` is the newest job of the last group of the previous page.
    """
    keys = (jobs.c.agent, jobs.c.run) if by_run else (jobs.c.agent,)
    newest = func.max(jobs.c.id)
    counts = {each: func.count().filter(jobs.c.status == each).label(each.value) for each in JobStatus}
    query: Select[Any] = (
        select(
            *keys,
            newest.label("newest_job_id"),
            func.count(distinct(jobs.c.submission_id)).label("submissions"),
            func.count(distinct(jobs.c.task_id + "/" + jobs.c.answer_name)).label("answers"),
            func.array_agg(distinct(jobs.c.task_id)).label("task_ids"),
            func.array_agg(distinct(jobs.c.run)).label("runs"),
            func.min(jobs.c.created_at).label("first_at"),
            func.max(jobs.c.created_at).label("last_at"),
            *counts.values(),
        )
        .where(jobs.c.kind == JobKind.ANSWER, *chosen.conditions(jobs), *equal((jobs.c.status, status)))
        .group_by(*keys)
        .order_by(newest.desc())
        .limit(limit)
    )
    if by_run:
        query = query.where(jobs.c.run.is_not(None))
    if before is not None:
        query = query.having(newest < before)
    return [
        JobGroup(
            agent=row["agent"],
            run=row["run"] if by_run else None,
            task_ids=tuple(row["task_ids"]),
            runs=tuple(run for run in row["runs"] if run is not None),
            job_counts={each.value: row[each.value] for each in JobStatus},
            **{name: row[name] for name in ("newest_job_id", "submissions", "answers", "first_at", "last_at")},
        )
        for row in (await connection.execute(query)).mappings()
    ]


async def list_submission_ids(
    connection: AsyncConnection,
    chosen: ListFilter,
    *,
    limit: int,
    before: str | None = None,
    status: JobStatus | None = None,
) -> list[str]:
    """Return submissions of answers, newest first. ``status``: at least one job has it."""
    judging = select(jobs.c.submission_id).where(
        jobs.c.submission_id == submissions.c.id, jobs.c.kind == JobKind.ANSWER, *equal((jobs.c.status, status))
    )
    conditions = (*chosen.conditions(submissions), *below(submissions.c.id, before))
    query = select(submissions.c.id).where(judging.exists(), *conditions)
    return list((await connection.execute(query.order_by(submissions.c.id.desc()).limit(limit))).scalars())
