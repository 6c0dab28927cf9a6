"""Routes for cited URLs: their state, and the results that depend on them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut
from app.api.page_models import CitedUrlOut, DependentsOut, TaskPagesOut, TasksPagesOut
from app.api.paging import NameFilter, PageRequestDep
from app.storage.captures import key_digest
from app.storage.cited_urls import dependents_of, list_tasks, list_urls
from cache.urls import MAX_URL_CHARS, canonical_key

router = APIRouter(prefix="/v1/pages", tags=["pages"])

_SHOWN = 200
_COUNTED = 10_000
_UrlText = Annotated[str, Query(min_length=1, max_length=MAX_URL_CHARS)]


@router.get("/urls")
async def urls(
    service: ServiceDep,
    caller: ReaderDep,
    part: PageRequestDep,
    task_id: NameFilter = None,
    agent: NameFilter = None,
    needs_work: bool | None = None,
    deleted: Annotated[bool, Query(description="true: only deleted URLs")] = False,
    url: Annotated[str | None, Query(min_length=1, max_length=MAX_URL_CHARS, description="only this URL")] = None,
) -> ListOut[CitedUrlOut]:
    """List cited URLs. URLs that need work come first, sorted by the number of leaves that depend on them in the newest
    results.
    """
    async with service.database.begin() as connection:
        found = await list_urls(
            connection,
            limit=part.limit + 1,
            owner=caller.visible_owner,
            agent=agent,
            task_id=task_id,
            needs_work=needs_work,
            deleted=deleted,
            after=part.cursor,
            key=None if url is None else key_digest(canonical_key(url)),
        )
    page, following = part.cut(found, lambda cited: cited.key)
    return ListOut(items=[CitedUrlOut.of(cited) for cited in page], next_cursor=following)


@router.get("/tasks")
async def tasks(service: ServiceDep, caller: ReaderDep, agent: NameFilter = None) -> TasksPagesOut:
    """List all tasks that have cited URLs, with counts."""
    async with service.database.begin() as connection:
        found = await list_tasks(connection, owner=caller.visible_owner, agent=agent)
    return TasksPagesOut(items=[TaskPagesOut.of(task) for task in found])


@router.get("/dependents")
async def dependents(
    service: ServiceDep, caller: ReaderDep, url: Annotated[list[_UrlText], Query(min_length=1, max_length=200)]
) -> DependentsOut:
    """Return the answers and leaves that depend on the pages of these URLs, and the cost of their last judging."""
    keys = [key_digest(canonical_key(one)) for one in url]
    async with service.database.begin() as connection:
        found = await dependents_of(connection, keys, limit=_COUNTED, owner=caller.visible_owner)
    return DependentsOut.of(found, shown=_SHOWN)
