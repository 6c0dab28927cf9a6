"""Filters of lists, and the routes of the lists of agents and runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, BeforeValidator, Field

from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut, RecordModel
from app.api.paging import JobsPageDep, NameFilter, PageRequest
from app.service import Service
from app.storage.listings import JobGroup, ListFilter, list_job_groups
from app.storage.records import JobStatus

router = APIRouter(prefix="/v1", tags=["results"])

_TIME = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?)?")


def _time(value: Any) -> Any:
    if not _TIME.fullmatch(str(value)):  # pydantic also accepts numbers
        raise ValueError("is not a time: send 2026-03-01 or 2026-03-01T09:30:00Z")
    return value


TimeFilter = Annotated[datetime | None, BeforeValidator(_time)]


async def _filter(
    agent: NameFilter = None,
    task_id: NameFilter = None,
    run: NameFilter = None,
    since: Annotated[TimeFilter, Query(description="Only what was created at this time or later")] = None,
    until: Annotated[TimeFilter, Query(description="Only what was created before this time")] = None,
) -> ListFilter:
    return ListFilter(agent=agent, task_id=task_id, run=run, since=_in_utc(since), until=_in_utc(until))


def _in_utc(time: datetime | None) -> datetime | None:
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


FilterDep = Annotated[ListFilter, Depends(_filter)]
"""Filters by agent, task, run and time, without the owner: call ``of_owner``."""


class JobCountsOut(BaseModel):
    """Number of jobs by status."""

    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int


class JobGroupOut(RecordModel):
    """Jobs of an agent or a run. All figures are of the jobs that match the filters."""

    agent: str
    submissions: int
    answers: int = Field(description="Different answers: pairs of task and name")
    job_counts: JobCountsOut
    tasks: int
    first_at: datetime = Field(description="Creation of the oldest job")
    last_at: datetime = Field(description="Creation of the newest job")
    task_ids: list[str] | None = Field(description="Null without include=tasks")


class AgentOut(JobGroupOut):
    """An agent."""

    runs: int = Field(description="Different labels of its submissions")
    run_names: list[str] | None = Field(description="Null without include=runs")


class LabelledRunOut(JobGroupOut):
    """A run of an agent: its submissions with the same label."""

    run: str


@router.get("/agents")
async def list_agents(
    service: ServiceDep,
    caller: ReaderDep,
    paging: JobsPageDep,
    chosen: FilterDep,
    status: JobStatus | None = None,
    include: Annotated[
        list[Literal["tasks", "runs"]] | None, Query(description="Parts to add; can be repeated")
    ] = None,
) -> ListOut[AgentOut]:
    """List agents that have jobs with these properties, by their newest job."""
    page, next_cursor = await _groups(service, chosen.of_owner(caller.visible_owner), paging, status, by_run=False)
    items = [
        AgentOut(
            **_figures(group, include or ()),
            runs=len(group.runs),
            run_names=sorted(group.runs) if "runs" in (include or ()) else None,
        )
        for group in page
    ]
    return ListOut(items=items, next_cursor=next_cursor)


@router.get("/runs")
async def list_runs(
    service: ServiceDep,
    caller: ReaderDep,
    paging: JobsPageDep,
    chosen: FilterDep,
    status: JobStatus | None = None,
    include: Annotated[list[Literal["tasks"]] | None, Query(description="Parts to add")] = None,
) -> ListOut[LabelledRunOut]:
    """List runs (agent and label) that have jobs with these properties, by their newest job."""
    page, next_cursor = await _groups(service, chosen.of_owner(caller.visible_owner), paging, status, by_run=True)
    items = [LabelledRunOut(**_figures(group, include or ()), run=str(group.run)) for group in page]
    return ListOut(items=items, next_cursor=next_cursor)


async def _groups(
    service: Service, chosen: ListFilter, paging: PageRequest, status: JobStatus | None, *, by_run: bool
) -> tuple[Sequence[JobGroup], str | None]:
    """Return a page of agents or runs, and the cursor of the next page."""
    async with service.database.begin() as connection:
        groups = await list_job_groups(
            connection, chosen, by_run=by_run, limit=paging.limit + 1, before=paging.cursor, status=status
        )
    return paging.split(groups, lambda group: group.newest_job_id)


def _figures(group: JobGroup, include: Collection[str]) -> dict[str, Any]:
    tasks = {"tasks": len(group.task_ids), "task_ids": sorted(group.task_ids) if "tasks" in include else None}
    return {**JobGroupOut.of_record(group, **tasks).model_dump(), **tasks}
