"""Routes for page changes: add, edit, delete, flag and review cited URLs, and undo.

Each change is a separate row with author, time and reason, and so is an undo. Captures and the evidence of results
never change. The rows that were not undone determine which capture is used for a URL: a change affects the answers of
its owner, or all answers if the caller has the scope ``admin``.

Routes repair evidence: they capture a page again, or upload its content. An uploaded page becomes evidence for the
answers of its owner, or for all answers if the caller has the scope ``admin``. Uploads pass the same checks as captures
and record the uploader. They are stored as new captures; the evidence of existing results does not change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import FormData, UploadFile

from app.access.keys import Caller
from app.api.access import ServiceDep, SubmitterDep
from app.api.examples import sends
from app.api.models import ListOut, PageOut
from app.api.pages import PageChangeIn, PageChangeOut, capture_of
from app.api.paging import IdPath, NameFilter, PageRequest, pages_by_id
from app.api.problems import Problem, not_found
from app.api.request_fields import StrictJsonRoute
from app.service import Service
from app.storage.captures import SHOWS, key_digest
from app.storage.page_changes import (
    ChangeAction,
    CitedUrl,
    PageChange,
    UrlFilter,
    captures_answering,
    find_change,
    insert_change,
    insert_effects,
    list_changes,
    list_urls,
    newest_change,
)
from app.storage.records import storable_text
from cache.capture import Capture, CaptureOutcome, Observation
from cache.errors import DocumentRejected
from cache.sources.uploads import UploadedPage, observe_upload
from cache.urls import MAX_URL_CHARS, canonical_key, unfetchable_reason

router = APIRouter(prefix="/v1/pages/changes", tags=["pages"], route_class=StrictJsonRoute)

_log = structlog.get_logger(__name__)
_INVALID = "The request has invalid fields; see errors"


@router.get("")
async def list_page_changes(
    service: ServiceDep,
    caller: SubmitterDep,
    paging: Annotated[PageRequest, pages_by_id("chg")],
    task_id: NameFilter = None,
    url: Annotated[str | None, Query(min_length=1, max_length=MAX_URL_CHARS)] = None,
) -> ListOut[PageChangeOut]:
    """List page changes, newest first."""
    key = None if url is None else key_digest(canonical_key(url))
    async with service.database.begin() as connection:
        page_changes = await list_changes(
            connection,
            limit=paging.limit + 1,
            before=paging.cursor,
            key_sha256=key,
            task_id=task_id,
            owner=caller.visible_owner,
        )
    return ListOut.page(page_changes, paging, lambda change: change.id, PageChangeOut.of_record)


@router.post("", status_code=201)
async def create_page_change(body: PageChangeIn, service: ServiceDep, caller: SubmitterDep) -> PageChangeOut:
    """Add, edit, delete, flag, unflag, review or unreview a cited URL."""
    _check_fields(body)
    new_change = _new_change(service, caller, body)
    cited = await _find_cited(service, caller, new_change)
    if body.action == "add":
        stored = await _add(service, new_change, cited)
    elif cited is None or cited.deleted:
        raise not_found("cited URL")
    elif body.action == "edit":
        stored = await _edit(service, new_change)
    else:
        stored = await _mark_or_delete(service, new_change, cited)
    _log.info("page changed", action=stored.action.value, url=stored.url, by=stored.by, change_id=stored.id)
    return PageChangeOut.of_record(stored)


@router.post("/{change_id}/undo", status_code=201)
async def undo_page_change(
    change_id: IdPath,
    service: ServiceDep,
    caller: SubmitterDep,
    reason: Annotated[str, Query(max_length=1000)] = "",
    by: Annotated[str, Query(max_length=100, description="Your name")] = "",
) -> PageChangeOut:
    """Undo a change. The undo is stored as a further change."""
    async with service.database.begin() as connection:
        undone = await find_change(connection, change_id)
        if undone is None or caller.visible_owner not in (None, undone.for_owner):
            raise not_found("change")
        if undone.action is ChangeAction.UNDO:
            raise Problem(409, "NOT_UNDOABLE", "An undo cannot be undone; make the change again")
        new_change = replace(
            undone,
            id=service.runtime.ids.new("chg"),
            action=ChangeAction.UNDO,
            reason=storable_text(reason.strip()),
            by=storable_text(by.strip()) or caller.owner,
            key_owner=caller.owner,
            created_at=service.runtime.clock.now(),
            undoes=undone.id,
            undone_by=None,
        )
        if not await insert_change(connection, new_change):
            raise Problem(409, "UNDONE_ALREADY", "This change was already undone")
    _log.info("page changed", action="undo", url=new_change.url, by=new_change.by, change_id=new_change.id)
    return PageChangeOut.of_record(new_change)


def _check_fields(body: PageChangeIn) -> None:
    """Check that the fields match the action and that new URLs can be captured.

    Raises:
        Problem: At least one field is invalid.
    """
    errors: list[tuple[str, str]] = []
    if (body.to is not None) != (body.action == "edit"):
        errors.append(("to", "is the correct URL: required for the action edit, not allowed for others"))
    if (body.task_id is not None) != (body.action == "add"):
        errors.append(("task_id", "is the task to add the URL to: required for the action add, not allowed for others"))
    for name, url in (("url", body.url if body.action == "add" else None), ("to", body.to)):
        refusal = None if url is None else unfetchable_reason(url.strip())
        if refusal is not None:
            errors.append((name, refusal))
    if body.to is not None and canonical_key(body.to) == canonical_key(body.url):
        errors.append(("to", "is another spelling of url: both have the same page"))
    if errors:
        raise Problem(422, "INVALID", _INVALID, errors=errors)


def _new_change(service: Service, caller: Caller, body: PageChangeIn) -> PageChange:
    return PageChange(
        id=service.runtime.ids.new("chg"),
        action=ChangeAction(body.action),
        key_sha256=key_digest(canonical_key(body.url)),
        url=storable_text(body.url.strip()),
        to_url=None if body.to is None else storable_text(body.to.strip()),
        task_id=body.task_id,
        reason=storable_text(body.reason.strip()),
        by=storable_text(body.by.strip()) or caller.owner,
        key_owner=caller.owner,
        for_owner=caller.visible_owner,
        created_at=service.runtime.clock.now(),
    )


async def _add(service: Service, new_change: PageChange, cited: CitedUrl | None) -> PageChange:
    """Add a URL to a task, and capture it unless it has a capture."""
    if cited is not None and new_change.task_id in cited.tasks and not cited.deleted:
        raise Problem(409, "LISTED_ALREADY", "The task already has this URL")
    capture = await service.runtime.pages.get(new_change.url, owner=new_change.for_owner)
    new_change = replace(new_change, page_id=capture.id)
    async with service.database.begin() as connection:
        await insert_change(connection, new_change)
    return new_change


async def _edit(service: Service, new_change: PageChange) -> PageChange:
    """Correct a URL: from now on, the page at ``to_url`` is used for all answers that cite it."""
    owner = new_change.for_owner
    correct_page = await service.runtime.pages.get(str(new_change.to_url), owner=owner)
    if not correct_page.is_evidence:
        detail = f"its capture ended with {correct_page.outcome.value}: {correct_page.detail}".rstrip(": ")
        raise Problem(409, "NO_EVIDENCE", "The page at the corrected URL is not evidence", errors=[("to", detail)])
    async with service.database.begin() as connection:
        before = await captures_answering(connection, new_change.key_sha256)
    used = await service.runtime.pages.add_alias(new_change.url, correct_page, provenance_of(new_change), owner=owner)
    new_change = replace(new_change, page_id=used.id)
    async with service.database.begin() as connection:
        await insert_change(connection, new_change, hides=before, shows=[used.id])
    return new_change


async def _mark_or_delete(service: Service, new_change: PageChange, cited: CitedUrl) -> PageChange:
    latest = cited.latest or cited.page
    if new_change.action is ChangeAction.REVIEW and latest is None:
        raise Problem(409, "NOT_CAPTURED", "This URL has no capture to review; capture it first")
    new_change = new_change if latest is None else replace(new_change, page_id=latest.id)
    async with service.database.begin() as connection:
        deleting = new_change.action is ChangeAction.DELETE
        hides = await captures_answering(connection, new_change.key_sha256) if deleting else ()
        await insert_change(connection, new_change, hides=hides)
    return new_change


async def _find_cited(service: Service, caller: Caller, new_change: PageChange) -> CitedUrl | None:
    """Return the state of the URL, or None if the caller has no access to it."""
    chosen = UrlFilter(key=new_change.key_sha256, owner=caller.visible_owner)
    async with service.database.begin() as connection:
        cited = await list_urls(connection, chosen, limit=1)
    return cited[0] if cited else None


def provenance_of(edit: PageChange) -> dict[str, str]:
    """Return the provenance of a capture that is used because of a correction."""
    provenance = {
        "corrected_by": edit.by,
        "corrected_to": str(edit.to_url),
        "corrected_at": edit.created_at.isoformat(),
    }
    return provenance | ({"correction_reason": edit.reason} if edit.reason else {})


upload_router = APIRouter(prefix="/v1/pages", tags=["pages"])

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


@upload_router.post("/{page_id}/recapture", status_code=201, responses=sends(201, "Location"))
async def recapture_page(page_id: IdPath, response: Response, service: ServiceDep, caller: SubmitterDep) -> PageOut:
    """Capture the URL of the page again. Later judging of your answers uses the new capture if it is evidence."""
    cited, owner = await capture_of(service, caller, page_id), caller.visible_owner
    async with service.database.begin() as connection:
        correction = await newest_change(connection, key_digest(cited.key), owner, ChangeAction.EDIT)
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
        await insert_effects(connection, correction, {used.id: SHOWS})
    return used


@upload_router.put("/{page_id}/content", status_code=201, responses=sends(201, "Location"), openapi_extra=_CONTENT)
async def upload_page_content(
    page_id: IdPath, request: Request, response: Response, service: ServiceDep, caller: SubmitterDep
) -> PageOut:
    """Upload the content of the page: PDF, MHTML, HTML, text, an image, or text and an image."""
    cited = await capture_of(service, caller, page_id)
    upload = await _read_upload(request, url=cited.url, by=caller.owner, service=service)
    try:
        seen = await observe_upload(upload)
    except DocumentRejected as error:
        raise _rejected_upload(error) from error
    capture = await _store_upload(service, caller, cited.url, seen)
    return await _created(service, response, capture)


async def _store_upload(service: Service, caller: Caller, url: str, seen: Observation) -> Capture:
    """Store uploaded content as a capture of a URL. If it is evidence, remove a flag of the URL."""
    for_owner = caller.visible_owner
    capture = await service.runtime.pages.add(url, seen, owner=for_owner)
    _log.info("page uploaded", page_id=capture.id, url=url, by=caller.owner, outcome=capture.outcome.value)
    async with service.database.begin() as connection:
        actions = (ChangeAction.FLAG, ChangeAction.UNFLAG, ChangeAction.REVIEW)
        flag = await newest_change(connection, key_digest(capture.key), for_owner, *actions)
        if flag is not None and flag.action is ChangeAction.FLAG and capture.is_evidence:
            done = replace(
                flag,
                id=service.runtime.ids.new("chg"),
                action=ChangeAction.UNFLAG,
                page_id=capture.id,
                reason="the page was uploaded",
                by=caller.owner,
                key_owner=caller.owner,
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
        _check_upload_fields(form)
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


def _check_upload_fields(form: FormData) -> None:
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
