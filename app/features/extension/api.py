"""API of the browser extension: pair a browser, list flagged URLs, submit the content of a tab.

The token of a browser gives access to this API only. A submitted page passes the same checks as any other and records
who submitted it and when. It is accepted only for a URL that needs work, so it cannot replace good evidence.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import structlog
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.datastructures import FormData, UploadFile

from app.api.access import ServiceDep
from app.api.middleware import EXTENSION_PATHS
from app.api.models import PageOut
from app.api.page_uploads import check_upload, store_upload
from app.api.problems import Problem
from app.api.request_fields import WHOLE_NUMBER
from app.api.response_headers import sends
from app.api.strict_json import StrictJsonRoute
from app.features.extension.pairing import (
    TOKEN_LIFETIME,
    BrowserDep,
    PairingOut,
    code_digest,
    new_token,
    token_digest,
    too_many_requests,
)
from app.features.extension.storage import Pairing, revoke_pairing, use_code
from app.service import Service
from app.storage.captures import key_digest
from app.storage.cited_urls import list_urls
from app.storage.text_cleanup import storable_text
from cache.page_text.submitted_boxes import SubmittedBoxes
from cache.page_text.text_boxes import MAX_LINES, Line, Piece
from cache.sources.uploads import BrowserPage, UploadedPage
from cache.urls import MAX_URL_CHARS, canonical_key

MAX_CHARS = 4 * 1024 * 1024
_MAX_PX = 1_000_000
_Px: TypeAlias = Annotated[float, Field(ge=-_MAX_PX, le=_MAX_PX, allow_inf_nan=False)]
_Size: TypeAlias = Annotated[float, Field(ge=0, le=_MAX_PX, allow_inf_nan=False)]
_Start: TypeAlias = Annotated[int, Field(ge=0, le=MAX_CHARS), WHOLE_NUMBER]
_Line: TypeAlias = tuple[_Start, _Px, _Px, _Size, _Size]
_Piece: TypeAlias = tuple[
    Annotated[str, Field(max_length=40)],
    Annotated[int, Field(ge=1, le=MAX_CHARS), WHOLE_NUMBER],
    Annotated[list[_Line], Field(min_length=1, max_length=MAX_LINES)],
]


class SubmittedBoxesIn(BaseModel):
    """Text boxes of a screenshot.

    ``pieces`` are tuples of a text's beginning, its length in characters, and its lines. A line is its start within the
    piece and its box (left, top, width, height) in CSS pixels of the page. The screenshot shows ``width`` by ``height``
    of these pixels.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    width: float = Field(gt=0, le=_MAX_PX, allow_inf_nan=False)
    height: float = Field(gt=0, le=_MAX_PX, allow_inf_nan=False)
    pieces: list[_Piece] = Field(max_length=MAX_LINES)

    @model_validator(mode="after")
    def _check_lines(self) -> SubmittedBoxesIn:
        if sum(len(lines) for _, _, lines in self.pieces) > MAX_LINES:
            raise ValueError(f"has more than {MAX_LINES} lines")
        for _, length, lines in self.pieces:
            starts = [line[0] for line in lines]
            if starts != sorted(starts) or starts[-1] > length:
                raise ValueError("has lines that are not in text order, or that start beyond the end of the text")
        return self


PLACES_SCHEMA: Final = SubmittedBoxesIn.model_json_schema() | {
    "description": "Boxes of the text in ``image``. The lines of a piece are in text order and start within it; "
    f"at most {MAX_LINES} lines in total"
}


def parse_submitted_boxes(text: str) -> SubmittedBoxes:
    """Parse and validate submitted text boxes.

    Raises:
        ValueError: the text does not match the schema. The message names the location.
    """
    try:
        boxes = SubmittedBoxesIn.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        location = ".".join(map(str, first["loc"]))
        raise ValueError(f"{location}: {first['msg']}" if location else str(first["msg"])) from error
    pieces = tuple(
        Piece(beginning=begins, length=length, lines=tuple(Line(*line) for line in lines))
        for begins, length, lines in boxes.pieces
    )
    return SubmittedBoxes(width=boxes.width, height=boxes.height, pieces=pieces)


class CodeIn(BaseModel):
    """A pairing code and a name for the browser."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"code": "K7QF-2M9X", "name": "Ada's Chromium"}}
    )

    code: str = Field(max_length=40)
    name: str = Field("a browser", min_length=1, max_length=100)


class TokenOut(BaseModel):
    """Token of a paired browser, which it sends as ``Authorization: Bearer``."""

    token: str
    pairing_id: str
    expires_at: datetime
    by: str


class FlaggedOut(BaseModel):
    """A cited URL that needs work and that a person can open in a browser."""

    url: str
    opens: str = Field(description="The address to open: the corrected URL, or else the URL")
    outcome: str | None
    leaves: int
    tasks: list[str]


class FlaggedListOut(BaseModel):
    """URLs that need work, sorted by the number of leaves that cite them, highest first."""

    items: list[FlaggedOut]


router = APIRouter(prefix=EXTENSION_PATHS.rstrip("/"), tags=["extension"], route_class=StrictJsonRoute)

_MAX_FLAGGED = 200
_MAX_PART_BYTES = 8 * 1024 * 1024
_TEXTS = {
    "url": MAX_URL_CHARS,
    "tab_url": MAX_URL_CHARS,
    "title": 1000,
    "text": _MAX_PART_BYTES,
    "places": MAX_CHARS,
}
_COUNT = re.compile(r"[0-9]{1,9}(\.0+)?")  # in JSON Schema, 3.0 is an integer too
_COUNTS = ("password_fields", "login_form_chars", "consent_chars", "inputs", "large_images")
_FILES = ("html", "image")
_log = structlog.get_logger(__name__)
_MAX_COUNT = 999_999_999
_NUMBER = {"type": "integer", "minimum": 0, "maximum": _MAX_COUNT}
_BINARY = {"type": "string", "format": "binary"}


def _text_field(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "maxLength": _TEXTS[name], **more}


_CAPTURE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["url", "text"],
                    "additionalProperties": False,
                    "properties": {
                        "url": _text_field(
                            "url", minLength=1, description="URL from the list of flagged URLs, unchanged"
                        ),
                        "text": _text_field("text", minLength=1, description="Visible text of the tab"),
                        "tab_url": _text_field("tab_url", description="Address that the tab shows"),
                        "title": _text_field("title", description="Title of the tab"),
                        "html": {**_BINARY, "description": "HTML of the page; stored, never served as a page"},
                        "image": {**_BINARY, "description": "Screenshot of the whole page"},
                        "places": PLACES_SCHEMA,
                        **dict.fromkeys(_COUNTS, _NUMBER),
                    },
                },
                "encoding": {"places": {"contentType": "application/json"}},
            }
        },
    }
}


@router.post("/pair", status_code=201)
async def pair_browser(body: CodeIn, request: Request, service: ServiceDep) -> TokenOut:
    """Exchange a pairing code for a token. Requires no API key; wrong codes are rate-limited."""
    client = "" if request.client is None else request.client.host
    wait_s = service.guess_limiter.wait_s(client)
    if wait_s > 0:
        raise too_many_requests(wait_s)
    token, now = new_token(), service.runtime.clock.now()
    async with service.database.begin() as connection:
        paired = await use_code(
            connection,
            code_digest(body.code),
            token_sha256=token_digest(token),
            name=storable_text(body.name),
            now=now,
            expires_at=now + TOKEN_LIFETIME,
        )
    if paired is None or paired.expires_at is None:
        detail = "The pairing code is wrong, used or older than five minutes: get a new one in the dashboard"
        raise Problem(403, "WRONG_CODE", detail)
    service.guess_limiter.guessed_right(client)
    _log.info("browser paired", pairing_id=paired.id, by=paired.owner)
    return TokenOut(token=token, pairing_id=paired.id, expires_at=paired.expires_at, by=paired.owner)


@router.get("/flagged")
async def list_flagged_pages(service: ServiceDep, browser: BrowserDep) -> FlaggedListOut:
    """List the URLs that need work, most affected leaves first."""
    async with service.database.begin() as connection:
        flagged_urls = await list_urls(connection, limit=_MAX_FLAGGED, owner=_owner_filter(browser), needs_work=True)
    items = [
        FlaggedOut(
            url=flagged_url.url,
            opens=flagged_url.to_url or flagged_url.url,
            outcome=None if flagged_url.latest is None else flagged_url.latest.outcome,
            leaves=flagged_url.leaves,
            tasks=list(flagged_url.tasks),
        )
        for flagged_url in flagged_urls
    ]
    return FlaggedListOut(items=items)


@router.post("/captures", status_code=201, responses=sends(201, "Location"), openapi_extra=_CAPTURE)
async def upload_capture(request: Request, response: Response, service: ServiceDep, browser: BrowserDep) -> PageOut:
    """Submit the content of a tab as the capture of a URL that needs work."""
    async with request.form(max_files=2, max_fields=len(_TEXTS) + len(_COUNTS), max_part_size=_MAX_PART_BYTES) as form:
        submitted = await _parse_form(form, browser, service)
    await _check_needs_work(service, browser, submitted.url)
    stored = await store_upload(
        service,
        submitted.url,
        await check_upload(submitted),
        owner=browser.owner,
        for_owner=_owner_filter(browser),
        by=f"{browser.owner}, {browser.name}",
    )
    response.headers["Location"] = f"/v1/pages/{stored.id}"
    return PageOut.of(await service.runtime.index.get(stored.id) or stored)


@router.delete("/pairing")
async def delete_own_pairing(service: ServiceDep, browser: BrowserDep) -> PairingOut:
    """End the pairing of this browser."""
    now = service.runtime.clock.now()
    async with service.database.begin() as connection:
        ended = await revoke_pairing(connection, browser.id, now=now)
    return PairingOut.of(ended or browser, now)


def _owner_filter(browser: Pairing) -> str | None:
    return None if browser.sees_all_owners else browser.owner


async def _check_needs_work(service: Service, browser: Pairing, url: str) -> None:
    """Raise Problem if the URL does not need work."""
    async with service.database.begin() as connection:
        matches = await list_urls(connection, limit=1, owner=_owner_filter(browser), key=key_digest(canonical_key(url)))
    if not matches or not matches[0].needs_work:
        raise Problem(409, "NOT_FLAGGED", "This URL needs no work: first flag it in the dashboard under Pages")


async def _parse_form(form: FormData, browser: Pairing, service: Service) -> UploadedPage:
    _check_fields(form)
    texts = {name: str(form.get(name) or "") for name in _TEXTS}
    counts = {name: int(float(str(form.get(name) or 0))) for name in _COUNTS}
    html, image = form.get("html"), form.get("image")
    content = BrowserPage(
        url=texts["tab_url"],
        title=texts["title"],
        html=await html.read() if isinstance(html, UploadFile) else None,
        password_field=counts["password_fields"] > 0,
        login_form_chars=counts["login_form_chars"],
        consent_chars=counts["consent_chars"],
        inputs=counts["inputs"],
        large_images=counts["large_images"],
        places=_parse_places(texts["places"]),
        extra_provenance={"browser": str(browser.name), "pairing": browser.id},
    )
    return UploadedPage(
        url=texts["url"],
        uploader=browser.owner,
        uploaded_at=service.runtime.clock.now(),
        text=texts["text"].replace("\r\n", "\n"),  # multipart forms of browsers always use CRLF
        image=await image.read() if isinstance(image, UploadFile) else None,
        browser=content,
    )


def _parse_places(submitted: str) -> SubmittedBoxes | None:
    """Parse the text boxes. Raises Problem if they are invalid."""
    try:
        return parse_submitted_boxes(submitted) if submitted else None
    except ValueError as error:
        detail = "Invalid page"
        raise Problem(422, "INVALID", detail, errors=[("places", str(error)[:300])]) from error


def _check_fields(form: FormData) -> None:
    """Raise Problem that lists every invalid field."""
    errors: list[tuple[str, str]] = []
    for name in dict.fromkeys(form):
        value = form.get(name)
        if name not in (*_TEXTS, *_COUNTS, *_FILES):
            errors.append((name, f"unknown field; allowed are {', '.join((*_TEXTS, *_COUNTS, *_FILES))}"))
        elif len(form.getlist(name)) > 1:
            errors.append((name, "must not be repeated"))
        elif isinstance(value, UploadFile) != (name in _FILES):
            errors.append((name, "must be a file with a file name" if name in _FILES else "must be text"))
        elif name in _TEXTS and len(str(value)) > _TEXTS[name]:
            errors.append((name, f"has more than {_TEXTS[name]} characters"))
        elif name in _COUNTS and not _COUNT.fullmatch(str(value)):
            errors.append((name, f"must be an integer from 0 to {_MAX_COUNT}"))
    errors += [(name, "is missing") for name in ("url", "text") if not form.get(name)]
    if errors:
        raise Problem(422, "INVALID", "Invalid page", errors=errors)
