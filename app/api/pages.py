"""Routes for cited URLs, for captures and for their stored bodies.

Content of other sites is never served as a page of this service: text is served as plain text, screenshots as images,
documents as downloads. The security headers of every response put it in a sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, get_args

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep
from app.api.examples import references
from app.api.models import ListOut, PageOut, RecordModel
from app.api.paging import NAME_PATTERN, CapturesPageDep, IdPath, NameFilter, UrlsPageDep
from app.api.problems import Problem, not_found
from app.api.request_fields import FETCHABLE_URL
from app.service import Service
from app.storage.captures import key_digest, list_captures, may_see
from app.storage.page_changes import (
    CitedUrl,
    DependentResult,
    TaskUrlCounts,
    UrlFilter,
    dependents_of,
    list_tasks,
    list_urls,
)
from cache.capture import SCREENSHOT_PREFIX, Capture, CaptureOutcome
from cache.errors import BlobCorrupt, BlobError, BlobMissing
from cache.urls import MAX_URL_CHARS, canonical_key
from judges.cpu_bound import run_cpu_bound
from judges.grounding.term_overlap import MAX_CLAIM_CHARS, closest_passage

Action: TypeAlias = Literal["add", "edit", "delete", "flag", "unflag", "review", "unreview"]


class CitedUrlOut(RecordModel):
    """A cited URL and its state."""

    key: str = Field(description="Identifies all spellings of the URL; cursor of the list")
    url: str
    tasks: list[str]
    leaves: int = Field(description="Leaves of the newest results that cite it")
    open_leaves: int = Field(description="Number of these leaves that were not judged")
    answers: int
    added: bool = Field(description="A person added it to a task")
    deleted: bool
    problem: bool = Field(description="It was captured, but no capture is evidence")
    flagged: bool
    flagged_by: str | None
    reviewed: bool = Field(description="A person reviewed its newest capture")
    reviewed_by: str | None
    needs_work: bool = Field(
        description="Flagged, or not captured as evidence and not reviewed yet; if it does not exist: with open claims"
    )
    to_url: str | None = Field(description="The corrected URL, if a person corrected it")
    page_id: str | None = Field(description="The capture that judges see for this URL")
    latest_id: str | None = Field(description="The newest capture")
    outcome: str | None = Field(description="Outcome of the newest capture")
    title: str
    detail: str
    http_status: int | None
    source: str | None
    captured_at: datetime | None

    @classmethod
    def of(cls, cited: CitedUrl) -> CitedUrlOut:
        latest = cited.latest or cited.page
        return cls.of_record(
            cited,
            page_id=None if cited.page is None else cited.page.id,
            latest_id=None if cited.latest is None else cited.latest.id,
            title="" if latest is None else latest.title,
            detail="" if latest is None else latest.detail,
            **{name: getattr(latest, name, None) for name in ("outcome", "http_status", "source", "captured_at")},
        )


class PassageOut(BaseModel):
    """Part of a page's text: ``text`` from offset ``start`` to ``end``."""

    start: int
    end: int
    text: str
    score: float = Field(description="orders passages of different pages for one claim, highest first")


class ClosestPassageOut(BaseModel):
    """The passage of a page that is closest to a claim; null if the page shares no significant word with it."""

    passage: PassageOut | None


class DependentsOut(BaseModel):
    """Results that depend on pages: totals, and the first answers."""

    answers: int
    leaves: int
    open_leaves: int
    calls: int = Field(description="Model calls of the last judging of these leaves")
    usd: float | None = Field(description="Cost of these calls; null if a price is unknown")
    items: list[DependentResult]

    @classmethod
    def of(cls, dependents: list[DependentResult], *, shown: int) -> DependentsOut:
        known = [one.usd for one in dependents if one.usd is not None]
        return cls(
            answers=len(dependents),
            leaves=sum(one.leaves for one in dependents),
            open_leaves=sum(one.open_leaves for one in dependents),
            calls=sum(one.calls for one in dependents),
            usd=sum(known) if len(known) == len(dependents) else None,
            items=dependents[:shown],
        )


class PageChangeIn(BaseModel):
    """A change to a cited URL."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {
                "action": "edit",
                "url": "https://example.org/pge",
                "to": "https://example.org/page",
                "reason": "a letter is missing",
            },
            "oneOf": [
                {
                    "required": ["task_id"],
                    "properties": {
                        "action": {"const": "add"},
                        "url": {"pattern": FETCHABLE_URL},
                        "to": {"type": "null"},
                        "task_id": {"type": "string"},
                    },
                },
                {
                    "required": ["to"],
                    "properties": {
                        "action": {"const": "edit"},
                        "to": {"type": "string", "pattern": FETCHABLE_URL},
                        "task_id": {"type": "null"},
                    },
                },
                {
                    "properties": {
                        "action": {"enum": [one for one in get_args(Action) if one not in ("add", "edit")]},
                        "to": {"type": "null"},
                        "task_id": {"type": "null"},
                    },
                },
            ],
        },
    )

    action: Action
    url: str = Field(min_length=1, max_length=MAX_URL_CHARS)
    to: str | None = Field(None, min_length=1, max_length=MAX_URL_CHARS, description="For edit: the correct URL")
    task_id: str | None = Field(None, pattern=NAME_PATTERN, description="For add: the task to add the URL to")
    reason: str = Field("", max_length=1000)
    by: str = Field("", max_length=100, description="Your name (default: the owner of the API key)")


class PageChangeOut(RecordModel):
    """A stored page change."""

    id: str
    action: str
    url: str
    to_url: str | None
    task_id: str | None
    page_id: str | None = Field(
        description="The capture at that time; for edit and add, the capture that is used from then on"
    )
    reason: str
    by: str
    key_owner: str
    created_at: datetime
    undoes: str | None
    undone_by: str | None


router = APIRouter(prefix="/v1/pages", tags=["pages"])

KnownHeader = Annotated[str | None, Header(alias="If-None-Match")]
_NEVER_CHANGES = "private, max-age=31536000, immutable"
_MAX_DEPENDENTS_SHOWN = 200
_MAX_DEPENDENTS_COUNTED = 10_000
_UrlText = Annotated[str, Query(min_length=1, max_length=MAX_URL_CHARS)]


# The routes of cited URLs come first, because ``/{page_id}`` matches their paths, too.
@router.get("/urls")
async def list_cited_urls(
    service: ServiceDep,
    caller: ReaderDep,
    paging: UrlsPageDep,
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
        cited_urls = await list_urls(
            connection,
            UrlFilter(
                owner=caller.visible_owner,
                agent=agent,
                task=task_id,
                work=needs_work,
                deleted=deleted,
                key=None if url is None else key_digest(canonical_key(url)),
            ),
            limit=paging.limit + 1,
            after=paging.cursor,
        )
    return ListOut.page(cited_urls, paging, lambda cited: cited.key, CitedUrlOut.of)


@router.get("/tasks")
async def list_page_tasks(service: ServiceDep, caller: ReaderDep, agent: NameFilter = None) -> ListOut[TaskUrlCounts]:
    """List all tasks that have cited URLs, with counts: those with most leaves waiting first."""
    async with service.database.begin() as connection:
        listed = await list_tasks(connection, owner=caller.visible_owner, agent=agent)
    return ListOut(items=listed, next_cursor=None)


@router.get("/dependents")
async def list_page_dependents(
    service: ServiceDep, caller: ReaderDep, url: Annotated[list[_UrlText], Query(min_length=1, max_length=200)]
) -> DependentsOut:
    """Return the answers and leaves that depend on the pages of these URLs, and the cost of their last judging."""
    keys = [key_digest(canonical_key(one)) for one in url]
    async with service.database.begin() as connection:
        results = await dependents_of(connection, keys, limit=_MAX_DEPENDENTS_COUNTED, owner=caller.visible_owner)
    return DependentsOut.of(results, shown=_MAX_DEPENDENTS_SHOWN)


_PLACES = {
    "type": "object",
    "required": ["version", "unit", "lines"],
    "properties": {
        "version": {"type": "integer"},
        "unit": {"type": "integer"},
        "lines": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "integer"}, "minItems": 7, "maxItems": 7},
        },
    },
}


def _bytes_of(
    media_type: str, schema: Mapping[str, Any] | None = None, *, is_download: bool = False
) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of a route that serves a stored body."""
    headers = ("ETag", "Cache-Control", *(["Content-Disposition"] if is_download else []))
    return {
        200: {"content": {media_type: {"schema": schema} if schema else {}}, **references(*headers)},
        304: {"description": "The client has this body (If-None-Match)", **references("ETag", "Cache-Control")},
    }


@router.get("")
async def list_pages(
    service: ServiceDep,
    caller: ReaderDep,
    paging: CapturesPageDep,
    task_id: NameFilter = None,
    agent: NameFilter = None,
    problem: Annotated[
        bool | CaptureOutcome | None, Query(description="true, false, or one outcome such as login_wall")
    ] = None,
) -> ListOut[PageOut]:
    """List captures, newest first. With a task or an agent, list the captures that its results used."""
    async with service.database.begin() as connection:
        captures = await list_captures(
            connection,
            limit=paging.limit + 1,
            owner=caller.visible_owner,
            before=paging.cursor,
            agent=agent,
            task_id=task_id,
            problem=problem if isinstance(problem, bool) else None,
            outcome=problem if isinstance(problem, CaptureOutcome) else None,
        )
    return ListOut.page(captures, paging, lambda capture: capture.id, PageOut.of)


@router.get("/{page_id}")
async def get_page(page_id: IdPath, service: ServiceDep, caller: ReaderDep) -> PageOut:
    """Return one capture."""
    return PageOut.of(await capture_of(service, caller, page_id))


@router.get("/{page_id}/text", response_class=Response, responses=_bytes_of("text/plain"))
async def get_page_text(page_id: IdPath, service: ServiceDep, caller: ReaderDep, known: KnownHeader = None) -> Response:
    """Return the visible text of the page, as judges see it."""
    return await _body(service, caller, page_id, "text", known, media_type="text/plain; charset=utf-8")


@router.get("/{page_id}/screenshot", response_class=Response, responses=_bytes_of("image/jpeg"))
async def get_page_screenshot(
    page_id: IdPath,
    service: ServiceDep,
    caller: ReaderDep,
    n: Annotated[int, Query(ge=0, le=1000)] = 0,
    known: KnownHeader = None,
) -> Response:
    """Return screenshot ``n`` of the page, counted from the top."""
    return await _body(service, caller, page_id, f"{SCREENSHOT_PREFIX}{n}", known, media_type="image/jpeg")


@router.get("/{page_id}/places", response_class=Response, responses=_bytes_of("application/json", _PLACES))
async def get_page_places(
    page_id: IdPath, service: ServiceDep, caller: ReaderDep, known: KnownHeader = None
) -> Response:
    """Return the position of each text line in the screenshots: `[start, end, n, left, top, width, height]`.

    `start` and `end` are offsets in the text. The box is in screenshot `n`; its full width and height are `unit` each.
    Uploaded pages and old captures may have no positions.
    """
    return await _body(service, caller, page_id, "places", known, media_type="application/json")


@router.get("/{page_id}/closest")
async def get_closest_passage(
    page_id: IdPath,
    service: ServiceDep,
    caller: ReaderDep,
    claim: Annotated[str, Query(min_length=1, max_length=MAX_CLAIM_CHARS)],
) -> ClosestPassageOut:
    """Return the passage of the page's text that shares most words, names and numbers with a claim.

    Code finds it, not a model. It shows what the page says on the subject of a refuted claim, and proves nothing.
    """
    body = await _body(service, caller, page_id, "text", None, media_type="text/plain")
    text = bytes(body.body).decode("utf-8", "replace")
    found = await run_cpu_bound(lambda: closest_passage(claim, text), text)
    if found is None:
        return ClosestPassageOut(passage=None)
    excerpt = text[found.start : found.end]
    return ClosestPassageOut(passage=PassageOut(start=found.start, end=found.end, text=excerpt, score=found.score))


@router.get("/{page_id}/pdf", response_class=Response, responses=_bytes_of("application/pdf", is_download=True))
async def get_page_pdf(page_id: IdPath, service: ServiceDep, caller: ReaderDep, known: KnownHeader = None) -> Response:
    """Return the PDF document as a download."""
    return await _body(service, caller, page_id, "pdf", known, media_type="application/pdf", suffix="pdf")


@router.get("/{page_id}/html", response_class=Response, responses=_bytes_of("text/html", is_download=True))
async def get_page_html(page_id: IdPath, service: ServiceDep, caller: ReaderDep, known: KnownHeader = None) -> Response:
    """Return the stored HTML as a download. The response headers stop a browser from running its scripts."""
    return await _body(service, caller, page_id, "html", known, media_type="text/html; charset=utf-8", suffix="html")


async def capture_of(service: Service, caller: Caller, page_id: str) -> Capture:
    """Return a capture that a result of the caller used.

    Raises:
        Problem: No such capture, or the caller has no access to it (404).
    """
    capture = await service.runtime.index.get(page_id)
    if capture is not None and caller.visible_owner is not None:
        async with service.database.begin() as connection:
            capture = capture if await may_see(connection, page_id, owner=caller.visible_owner) else None
    if capture is None:
        raise not_found("page")
    return capture


async def _body(
    service: Service,
    caller: Caller,
    page_id: str,
    name: str,
    known: str | None,
    *,
    media_type: str,
    suffix: str | None = None,
) -> Response:
    """Return a stored body after checking its hash; with a ``suffix``, as a download. Clients may cache it forever."""
    blob = (await capture_of(service, caller, page_id)).blobs.get(name)
    if blob is None:
        raise not_found(f"{name} of this page")
    headers = {"ETag": f'"{blob.sha256}"', "Cache-Control": _NEVER_CHANGES}
    if known is not None and (known.strip() == "*" or headers["ETag"] in known):
        return Response(status_code=304, headers=headers)
    try:
        data = await service.runtime.blobs.get(blob.sha256)
    except (BlobMissing, BlobCorrupt) as error:
        raise _lost(page_id, name, error) from error
    if suffix is not None:
        headers["Content-Disposition"] = f'attachment; filename="{page_id}.{suffix}"'
    return Response(data, media_type=media_type, headers=headers)


def _lost(page_id: str, name: str, error: BlobError) -> Problem:
    """Return the error for a body that was stored but is missing or damaged."""
    remedy = f"capture the page again with POST /v1/pages/{page_id}/recapture"
    return Problem(404, "NOT_FOUND", f"The stored {name} of this page is missing or damaged ({error.detail}); {remedy}")
