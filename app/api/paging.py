"""Pagination of lists. The cursor is the id, key or position of the last item of the previous page."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, params
from pydantic import BaseModel, BeforeValidator

from app.clock import ID_ALPHABET, ID_CHARS
from app.storage.listings import ListFilter

T = TypeVar("T")
MAX_LIMIT = 200
ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

IdPath = Annotated[str, Path(pattern=ID_PATTERN)]
NamePath = Annotated[str, Path(pattern=NAME_PATTERN)]
IdFilter = Annotated[str | None, Query(pattern=ID_PATTERN)]
NameFilter = Annotated[str | None, Query(pattern=NAME_PATTERN)]
ModelFilter = Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Cursor and page size of a list request."""

    cursor: str | None
    limit: int

    def split(self, rows: Sequence[T], name: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
        """Return the page and the next cursor from up to ``limit + 1`` items."""
        page = rows[: self.limit]
        return page, name(page[-1]) if len(rows) > self.limit else None


def _page_request(cursor_pattern: str, example: str) -> Callable[..., Awaitable[PageRequest]]:
    async def read(
        cursor: str | None = Query(None, pattern=cursor_pattern, json_schema_extra={"example": example}),
        limit: int = Query(50, ge=1, le=MAX_LIMIT),
    ) -> PageRequest:
        return PageRequest(cursor, limit)

    return read


def pages_by_id(prefix: str) -> params.Depends:
    """Return the dependency of a list whose cursor is the id of an item. All other cursors are 422."""
    pattern = f"^{prefix}_[{ID_ALPHABET}]{{{ID_CHARS}}}$"
    dependency: params.Depends = Depends(_page_request(pattern, f"{prefix}_{ID_ALPHABET[:ID_CHARS]}"))
    return dependency


JobsPageDep = Annotated[PageRequest, pages_by_id("job")]
ResultsPageDep = Annotated[PageRequest, pages_by_id("res")]
CapturesPageDep = Annotated[PageRequest, pages_by_id("page")]
UrlsPageDep = Annotated[PageRequest, Depends(_page_request("^[0-9a-f]{64}$", "0" * 64))]
PositionsPageDep = Annotated[PageRequest, Depends(_page_request("^[0-9]{1,9}$", "50"))]
"""Pagination of lists whose cursor is a number: a position or an offset."""


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
