"""Captured pages: what was seen, and the stored bytes of it.

What others wrote is never handed out as a page of ours: text as plain text, pictures as pictures,
documents as downloads, all of it sandboxed by the headers every answer carries.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.access import OwnerDep, ServiceDep
from app.api.models import ListOut, PageOut
from app.api.paging import IdPath, NameFilter, SliceDep
from app.api.problems import not_found
from app.service import Service
from app.storage.captures import list_captures
from cache.capture import Capture, CaptureOutcome
from cache.errors import BlobCorrupt, BlobMissing
from cache.pages import SCREENSHOT_ROLE

router = APIRouter(prefix="/v1/pages", tags=["pages"])


@router.get("")
async def pages(
    service: ServiceDep,
    _owner: OwnerDep,
    part: SliceDep,
    task_id: NameFilter = None,
    agent: NameFilter = None,
    problem: Annotated[
        bool | CaptureOutcome | None, Query(description="true, false, or one outcome such as login_wall")
    ] = None,
) -> ListOut[PageOut]:
    """Captures, newest first; with a task or agent those its results were judged by."""
    async with service.database.begin() as connection:
        found = await list_captures(
            connection,
            limit=part.limit + 1,
            before=part.cursor,
            agent=agent,
            task_id=task_id,
            problem=problem if isinstance(problem, bool) else None,
            outcome=problem if isinstance(problem, CaptureOutcome) else None,
        )
    page, following = part.cut(found, lambda capture: capture.id)
    return ListOut(items=[PageOut.of(capture) for capture in page], next_cursor=following)


@router.get("/{page_id}")
async def page(page_id: IdPath, service: ServiceDep, _owner: OwnerDep) -> PageOut:
    """One attempt to observe a URL."""
    return PageOut.of(await _capture(service, page_id))


@router.get("/{page_id}/text", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def text(page_id: IdPath, service: ServiceDep, _owner: OwnerDep) -> Response:
    """The text that judges were shown."""
    return await _body(service, page_id, "text", media_type="text/plain; charset=utf-8")


@router.get("/{page_id}/screenshot", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}})
async def screenshot(
    page_id: IdPath, service: ServiceDep, _owner: OwnerDep, n: Annotated[int, Query(ge=0, le=1000)] = 0
) -> Response:
    """One of the pictures that judges were shown, from the top of the page."""
    return await _body(service, page_id, f"{SCREENSHOT_ROLE}{n}", media_type="image/jpeg")


@router.get("/{page_id}/pdf", response_class=Response, responses={200: {"content": {"application/pdf": {}}}})
async def pdf(page_id: IdPath, service: ServiceDep, _owner: OwnerDep) -> Response:
    """The document itself, as a download."""
    return await _body(service, page_id, "pdf", media_type="application/pdf", download=f"{page_id}.pdf")


@router.post("/{page_id}/recapture", status_code=201)
async def recapture(page_id: IdPath, service: ServiceDep, _owner: OwnerDep) -> PageOut:
    """Observe the page's URL again, now; later judgements use the new capture if it is evidence."""
    return PageOut.of(await service.runtime.pages.get((await _capture(service, page_id)).url, refresh=True))


async def _capture(service: Service, page_id: str) -> Capture:
    found = await service.runtime.index.get(page_id)
    if found is None:
        raise not_found("page")
    return found


async def _body(service: Service, page_id: str, role: str, *, media_type: str, download: str | None = None) -> Response:
    blob = (await _capture(service, page_id)).blobs.get(role)
    if blob is None:
        raise not_found(f"{role} of this page")
    try:
        data = await service.runtime.blobs.get(blob.sha256)
    except (BlobMissing, BlobCorrupt) as error:
        raise not_found(f"{role} any more: {error.detail}") from error
    headers = {"ETag": f'"{blob.sha256}"'}
    if download is not None:
        headers["Content-Disposition"] = f'attachment; filename="{download}"'
    return Response(data, media_type=media_type, headers=headers)
