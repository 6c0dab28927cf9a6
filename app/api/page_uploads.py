"""Routes to repair evidence: capture a page again, or upload its content.

An uploaded page becomes evidence for the answers of its owner, or for all answers if the caller has the scope
``admin``. Uploads pass the same checks as captures and record the uploader. They are stored as new captures; the
evidence of existing results does not change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import structlog
from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData, UploadFile

from app.api.access import ServiceDep, SubmitterDep
from app.api.models import PageOut
from app.api.page_changes import provenance_of
from app.api.pages import capture_of
from app.api.paging import IdPath
from app.api.problems import Problem
from app.api.response_headers import sends
from app.service import Service
from app.storage.captures import key_digest
from app.storage.page_changes import (
    ChangeAction,
    PageChange,
    active_flag,
    correction_of,
    insert_change,
    insert_shown,
)
from cache.capture import Capture, CaptureOutcome, Observation
from cache.errors import DocumentRejected
from cache.sources.uploads import UploadedPage, observe_upload

router = APIRouter(prefix="/v1/pages", tags=["pages"])

_log = structlog.get_logger(__name__)
_FORM = "multipart/form-data"
_FORM_FIELDS = ("file", "text", "image")
_MAX_TEXT_BYTES = 8 * 1024 * 1024
_BINARY = {"schema": {"type": "string", "format": "binary", "minLength": 1}}
_CONTENT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The content of the page. Its bytes determine the format; the media type is only a hint.",
        "content": {
            "application/pdf": _BINARY,
            "multipart/related": _BINARY,
            "text/html": {**_BINARY, "example": "<!doctype html><title>Ponds</title><p>Walden Pond is 102 feet deep."},
            "text/plain": {**_BINARY, "example": "Walden Pond is 102 feet deep."},
            "image/png": _BINARY,
            "image/jpeg": _BINARY,
            _FORM: {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "oneOf": [{"required": ["file"]}, {"required": ["text"]}],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "PDF, MHTML, HTML or text"},
                        "text": {
                            "type": "string",
                            "pattern": r"\S",
                            "description": "Text of the page, instead of a file",
                        },
                        "image": {"type": "string", "format": "binary", "description": "Screenshot of the page"},
                    },
                }
            },
        },
    }
}


@router.post("/{page_id}/recapture", status_code=201, responses=sends(201, "Location"))
async def recapture_page(page_id: IdPath, response: Response, service: ServiceDep, caller: SubmitterDep) -> PageOut:
    """Capture the URL of the page again. Later judging of your answers uses the new capture if it is evidence."""
    cited, owner = await capture_of(service, caller, page_id), caller.visible_owner
    async with service.database.begin() as connection:
        correction = await correction_of(connection, key_digest(cited.key), owner)
    if correction is None:
        return await _created(service, response, await service.runtime.pages.get(cited.url, refresh=True, owner=owner))
    return await _created(service, response, await _recapture_corrected(service, cited, correction, owner))


async def _recapture_corrected(service: Service, cited: Capture, correction: PageChange, owner: str | None) -> Capture:
    """Capture the corrected URL again, and use the capture for the cited URL if it is evidence."""
    seen = await service.runtime.pages.get(str(correction.to_url), refresh=True, owner=owner)
    if not seen.is_evidence:
        return seen
    used = await service.runtime.pages.add_alias(cited.url, seen, provenance_of(correction), owner=owner)
    async with service.database.begin() as connection:
        await insert_shown(connection, correction, used.id)
    return used


@router.put("/{page_id}/content", status_code=201, responses=sends(201, "Location"), openapi_extra=_CONTENT)
async def upload_page_content(
    page_id: IdPath, request: Request, response: Response, service: ServiceDep, caller: SubmitterDep
) -> PageOut:
    """Upload the content of the page: PDF, MHTML, HTML, text, an image, or text and an image."""
    cited = await capture_of(service, caller, page_id)
    upload = await _read_upload(request, url=cited.url, by=caller.owner, service=service)
    seen = await check_upload(upload)
    capture = await store_upload(
        service, cited.url, seen, owner=caller.owner, for_owner=caller.visible_owner, by=caller.owner
    )
    return await _created(service, response, capture)


async def check_upload(upload: UploadedPage) -> Observation:
    """Check uploaded content like a capture.

    Raises:
        Problem: The content was rejected.
    """
    try:
        return await observe_upload(upload)
    except DocumentRejected as error:
        raise _rejected_upload(error) from error


async def store_upload(
    service: Service, url: str, seen: Observation, *, owner: str, for_owner: str | None, by: str
) -> Capture:
    """Store uploaded content as a capture of a URL. If it is evidence, remove a flag of the URL.

    ``for_owner``: the capture is used for the answers of this owner only. None: for all answers.
    """
    capture = await service.runtime.pages.add(url, seen, owner=for_owner)
    _log.info("page uploaded", page_id=capture.id, url=url, by=by, outcome=capture.outcome.value)
    async with service.database.begin() as connection:
        flag = await active_flag(connection, key_digest(capture.key), for_owner)
        if flag is not None and capture.is_evidence:
            done = replace(
                flag,
                id=service.runtime.ids.new("chg"),
                action=ChangeAction.UNFLAG,
                page_id=capture.id,
                reason="the page was uploaded",
                by=by,
                key_owner=owner,
                for_owner=for_owner,
                created_at=service.runtime.clock.now(),
            )
            await insert_change(connection, done)
    return capture


async def _created(service: Service, response: Response, capture: Capture) -> PageOut:
    response.headers["Location"] = f"/v1/pages/{capture.id}"
    # The stored form, so that later responses are identical.
    return PageOut.of(await service.runtime.index.get(capture.id) or capture)


async def _read_upload(request: Request, *, url: str, by: str, service: Service) -> UploadedPage:
    now = service.runtime.clock.now()
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() != _FORM:
        content = await request.body()
        if not content:
            raise _invalid("", "is empty: send the content of the page")
        return UploadedPage(url=url, uploader=by, uploaded_at=now, content=content, content_type=content_type)
    async with request.form(max_files=2, max_fields=2, max_part_size=_MAX_TEXT_BYTES) as form:
        _check_fields(form)
        file, text, image = form.get("file"), form.get("text"), form.get("image")
        return UploadedPage(
            url=url,
            uploader=by,
            uploaded_at=now,
            content=await file.read() if isinstance(file, UploadFile) else None,
            content_type=(file.content_type or "") if isinstance(file, UploadFile) else "",
            text=text if isinstance(text, str) else None,
            image=await image.read() if isinstance(image, UploadFile) else None,
        )


def _check_fields(form: FormData) -> None:
    for name in form:
        if name not in _FORM_FIELDS:
            raise _invalid(name, f"is not a field of this form; the fields are {', '.join(_FORM_FIELDS)}")
        if len(form.getlist(name)) > 1:
            raise _invalid(name, "is given more than once")
        if isinstance(form.get(name), UploadFile) != (name != "text"):
            raise _invalid(name, "must be text" if name == "text" else "must be a file with a file name")
    if ("file" in form) == ("text" in form):
        raise _invalid("file", "or text is required: send exactly one of them, and optionally an image")
    text = form.get("text")
    if isinstance(text, str) and not text.strip():
        raise _invalid("text", "is empty")


def _invalid(path: str, message: str) -> Problem:
    return Problem(422, "INVALID", "The uploaded page is invalid; see errors", errors=[(path, message)])


def _rejected_upload(error: DocumentRejected) -> Problem:
    if error.outcome is CaptureOutcome.TOO_LARGE:
        return Problem(413, "TOO_LARGE", error.detail)
    message = f"{error.outcome.value}: {error.detail}"
    return Problem(
        422, "DOCUMENT_REJECTED", "The uploaded content is not a usable page; see errors", errors=[("", message)]
    )
