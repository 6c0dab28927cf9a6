"""Dashboard pages of captures: list, detail page, screenshots, capture again, upload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import JSONResponse, RedirectResponse

from app.dashboard.answer_html import page_mark
from app.dashboard.api_access import FormField
from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import EmptyForm, NotFound
from app.dashboard.html_route import HtmlRoute
from app.dashboard.leaf_view import screenshot_numbers
from app.dashboard.outline import Node, outline
from app.dashboard.passages import pieces
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, IdPath, IdQuery, Viewer, ViewerDep, query_of
from app.dashboard.wording import state_words

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_PER_PAGE = 50
_MAX_CSV = 10_000
_MAX_RESULTS = 20
MAX_TEXT_CHARS = 400_000
_CSV = ("id", "url", "final_url", "outcome", "problem", "http_status", "kind", "title", "detail", "captured_at",
        "duration_s")  # fmt: skip
_ORIGIN_CSV = ("result_id", "agent", "task_id", "answer_name")
_LEAVES_CSV = ("result_id", "agent", "task_id", "answer", "leaf", "state", "usd")
Name = Annotated[str | None, Query(max_length=100)]
Spans = Annotated[str, Query(pattern=r"^(\d{1,9}-\d{1,9})?(,\d{1,9}-\d{1,9}){0,99}$")]


@router.get("/pages/captures")
async def captures(
    viewer: ViewerDep,
    problem: Annotated[str | None, Query(pattern="^[a-z0-9_]{0,30}$")] = None,
    agent: Name = None,
    task_id: Name = None,
    cursor: IdQuery = None,
    format: Format = Format.HTML,
) -> Response:
    """List all captures, newest first."""
    chosen = {"problem": problem or None, "agent": agent or None, "task_id": task_id or None}
    query = query_of(chosen)
    if format is Format.CSV:
        pages = await viewer.api.items("/v1/pages", at_most=_MAX_CSV, **chosen)
        return await csv_file("captures", _CSV, ([page[name] for name in _CSV] for page in pages))
    listed = await viewer.api.get("/v1/pages", limit=_PER_PAGE, cursor=cursor, **chosen)
    return await viewer.page(
        "captures.html", title="All captures", here="pages", json=f"/v1/pages?{query}",
        csv=f"/pages/captures?format=csv&{query}", pages=listed["items"], following=listed["next_cursor"],
        chosen=chosen, query=query,
    )  # fmt: skip


@router.get("/pages/{page_id}")
async def page(page_id: IdPath, viewer: ViewerDep, mark: Spans = "", format: Format = Format.HTML) -> Response:
    """Show one capture and its dependents. ``mark`` are ranges of its text to highlight: ``start-end,start-end``."""
    capture = await viewer.api.get(f"/v1/pages/{page_id}")
    dependents = await viewer.api.get("/v1/pages/dependents", url=capture["url"])
    results = await _dependents(viewer, dependents, str(capture["url"]))
    if format is Format.CSV:
        rows = (
            (*(result[name] for name in _ORIGIN_CSV), leaf.key, leaf.state, _usd(leaf))
            for result in results
            for leaf in result["leaves"]
        )
        return await csv_file(f"leaves-on-{page_id}", _LEAVES_CSV, rows)
    text = await viewer.api.text(f"/v1/pages/{page_id}/text")
    spans = [(int(low), int(high)) for low, _, high in (part.partition("-") for part in mark.split(",") if part)]
    return await viewer.page(
        "page.html", title=capture["title"] or capture["url"], here="pages", json=f"/v1/pages/{page_id}", page=capture,
        pieces=None if text is None else pieces(text, spans, end=max([MAX_TEXT_CHARS, *(high for _, high in spans)])),
        cut=text is not None and len(text) > MAX_TEXT_CHARS, screenshots=screenshot_numbers(capture),
        dependents=dependents, results=results, urls=[capture["url"]],
        csv=f"/pages/{page_id}?format=csv" if results else None,
    )  # fmt: skip


def _usd(leaf: Node) -> float | None:
    cost = (leaf.fields.get("usage") or {}).get("usd")
    return None if cost is None else float(cost)


async def _dependents(viewer: Viewer, dependents: Mapping[str, Any], url: str) -> list[dict[str, Any]]:
    """Return the origins of the results that cite the page, most leaves first.

    Each has the citing ``leaves`` and their cost ``usd`` (None: unknown).
    """
    found, mark = [], page_mark(url)
    for origin in dependents["items"][:_MAX_RESULTS]:
        result = await viewer.api.get(f"/v1/results/{origin['result_id']}")
        leaves = [leaf for leaf in outline(result).leaves if mark in map(page_mark, leaf.fields.get("sources") or ())]
        costs = [_usd(leaf) for leaf in leaves]
        if leaves:
            usd = None if None in costs else sum(cost or 0.0 for cost in costs)
            found.append({**origin, "leaves": leaves, "usd": usd})
    return found


@router.get("/pages/{page_id}/picture/{number}")
async def screenshot(page_id: IdPath, number: int, viewer: ViewerDep) -> Response:
    """Serve one screenshot (JPEG)."""
    response = await viewer.api.request("GET", f"/v1/pages/{page_id}/screenshot", params={"n": number})
    if response.is_error:
        raise NotFound("This capture has no such screenshot")
    # Captures are immutable.
    headers = HEADERS | {"Cache-Control": "private, max-age=86400", "X-Content-Type-Options": "nosniff"}
    return Response(response.content, media_type="image/jpeg", headers=headers)


@router.post("/pages/{page_id}/recapture", dependencies=[FormCheck])
async def recapture(page_id: IdPath, request: Request, viewer: ViewerDep) -> Response:
    """Capture the page again and show the new capture; for scripts, return JSON."""
    return _captured(request, await viewer.api.post(f"/v1/pages/{page_id}/recapture"))


@router.post("/pages/{page_id}/content", dependencies=[FormCheck])
async def upload(
    page_id: IdPath,
    request: Request,
    viewer: ViewerDep,
    file: Annotated[UploadFile | None, File()] = None,
    image: Annotated[UploadFile | None, File()] = None,
    text: Annotated[str, Form()] = "",
) -> Response:
    """Upload the content of a page that cannot be captured: a file, or text with an image."""
    fields: dict[str, FormField] = {"text": (None, text.encode(), "text/plain")} if text.strip() else {}
    for name, sent_file in (("file", file), ("image", image)):
        if sent_file is not None and sent_file.size:
            fields[name] = (
                sent_file.filename or name,
                await sent_file.read(),
                sent_file.content_type or "application/octet-stream",
            )
    if not fields:
        raise EmptyForm("Choose a file or enter the text of the page")
    stored = await viewer.api.put_form(f"/v1/pages/{page_id}/content", fields)
    return _captured(request, stored)


def _captured(request: Request, page: Mapping[str, Any]) -> Response:
    if not request.headers.get("HX-Request"):
        return RedirectResponse(f"/pages/{page['id']}", 303, headers=HEADERS)
    state = "Still a problem" if page["problem"] else "Repaired"
    message = f"{state}, {state_words(page['outcome'])}: {page['url']}"
    return JSONResponse({"url": page["url"], "message": message, "repaired": not page["problem"]}, headers=HEADERS)
