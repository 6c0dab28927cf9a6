"""Pagination of lists. The cursor is the id, key or position of the last item of the previous page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Path, Query

T = TypeVar("T")
MAX_LIMIT = 200
ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
POSITION_PATTERN = r"^[0-9]{1,9}$"
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

IdPath = Annotated[str, Path(pattern=ID_PATTERN)]
NamePath = Annotated[str, Path(pattern=NAME_PATTERN)]
NameFilter = Annotated[str | None, Query(pattern=NAME_PATTERN)]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Cursor and page size of a list request."""

    cursor: str | None
    limit: int

    def split(self, rows: Sequence[T], name: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
        """Return the page and the next cursor from up to ``limit + 1`` items."""
        page = rows[: self.limit]
        return page, name(page[-1]) if len(rows) > self.limit else None


async def _page_request(
    cursor: Annotated[str | None, Query(pattern=ID_PATTERN)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
) -> PageRequest:
    return PageRequest(cursor, limit)


async def _position_page_request(
    cursor: Annotated[str | None, Query(pattern=POSITION_PATTERN, json_schema_extra={"example": "50"})] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
) -> PageRequest:
    return PageRequest(cursor, limit)


PageRequestDep = Annotated[PageRequest, Depends(_page_request)]
PositionPageRequestDep = Annotated[PageRequest, Depends(_position_page_request)]
"""Pagination of lists whose cursor is a number: a position or an offset."""
