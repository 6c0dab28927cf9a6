"""Routes for the origin of results: answer, job and submission, and the result history of an agent."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from fastapi import APIRouter, Response
from pydantic import BaseModel

from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut
from app.api.paging import IdPath, NamePath, PageRequestDep
from app.api.problems import not_found
from app.storage import bundle_roots as roots
from app.storage import history as rows

router = APIRouter(prefix="/v1", tags=["results"])

_MARKDOWN = "text/markdown; charset=utf-8"


class OriginOut(BaseModel):
    """A result without its tree: the answer that it judges, and its job and submission."""

    result_id: str
    job_id: str
    submission_id: str
    agent: str
    task_id: str
    answer_name: str
    answer_sha256: str
    run: str | None
    model: str | None
    status: str
    final_score: float
    created_at: datetime

    @classmethod
    def of(cls, origin: rows.ResultOrigin) -> OriginOut:
        return cls(**dataclasses.asdict(origin))


class BundleOut(BaseModel):
    """One evidence bundle. ``content``: whether it contains the content of the pages."""

    root_sha256: str
    content: bool
    created_at: datetime


@router.get("/agents/{agent}/history")
async def history(agent: NamePath, service: ServiceDep, caller: ReaderDep, part: PageRequestDep) -> ListOut[OriginOut]:
    """List the results of an agent without their trees, newest first."""
    async with service.database.begin() as connection:
        found = await rows.list_origins(
            connection, agent, limit=part.limit + 1, owner=caller.visible_owner, before=part.cursor
        )
    page, following = part.cut(found, lambda origin: origin.result_id)
    return ListOut(items=[OriginOut.of(origin) for origin in page], next_cursor=following)


@router.get("/results/{result_id}/origin")
async def origin(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> OriginOut:
    """Return the job and submission of a result."""
    async with service.database.begin() as connection:
        found = await rows.origin_of(connection, result_id, owner=caller.visible_owner)
    if found is None:
        raise not_found("result")
    return OriginOut.of(found)


@router.get("/results/{result_id}/bundles")
async def bundles(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> ListOut[BundleOut]:
    """List the evidence bundles that contain a result, oldest first."""
    async with service.database.begin() as connection:
        found = await roots.roots_of(connection, result_id, owner=caller.visible_owner)
    if found is None:
        raise not_found("result")
    return ListOut(items=[BundleOut(**dataclasses.asdict(root)) for root in found], next_cursor=None)


@router.get("/results/{result_id}/answer", response_class=Response, responses={200: {"content": {"text/markdown": {}}}})
async def answer(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> Response:
    """Return the judged answer unchanged, byte for byte."""
    async with service.database.begin() as connection:
        text = await rows.judged_text(connection, result_id, owner=caller.visible_owner)
    if text is None:
        raise not_found("result")
    return Response(text, media_type=_MARKDOWN)
