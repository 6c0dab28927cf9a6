"""Filters of lists, and the routes of the lists of agents and runs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import BaseModel, BeforeValidator

from app.api.paging import NameFilter
from app.storage.listings import ListFilter

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
