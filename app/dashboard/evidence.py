"""Captured pages: which there are and what is wrong with them, the text and pictures that judges saw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import JSONResponse, RedirectResponse

from app.dashboard.api_access import FormField
from app.dashboard.dependents import Dependent, dependent
from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import NothingGiven, NothingThere
from app.dashboard.jobs import IdPath, IdQuery
from app.dashboard.leaf_view import picture_numbers
from app.dashboard.outline import Node
from app.dashboard.pages_route import PageRoute
from app.dashboard.passages import pieces
from app.dashboard.rendering import HEADERS
from app.dashboard.scanning import results_of
from app.dashboard.viewer import FormCheck, Viewer, ViewerDep, query_of
from app.dashboard.wording import state_words

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PER_PAGE = 50
_MOST_CSV = 10_000
_MOST_RESULTS = 20
MOST_TEXT = 400_000
_CSV = ("id", "url", "final_url", "outcome", "problem", "http_status", "kind", "title", "detail", "captured_at",
        "duration_s")  # fmt: skip
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
    """Every attempt to observe a page, newest first."""
    chosen = {"problem": problem or None, "agent": agent or None, "task_id": task_id or None}
    query = query_of(chosen)
    if format is Format.CSV:
        found = await viewer.api.items("/v1/pages", at_most=_MOST_CSV, **chosen)
        return await csv_file("captures", _CSV, ([page[name] for name in _CSV] for page in found))
    listed = await viewer.api.get("/v1/pages", limit=_PER_PAGE, cursor=cursor, **chosen)
    return await viewer.page(
        "captures.html", title="All captures", here="pages", json=f"/v1/pages?{query}",
        csv=f"/pages/captures?format=csv&{query}", pages=listed["items"], following=listed["next_cursor"],
        chosen=chosen, query=query,
    )  # fmt: skip


@router.get("/pages/{page_id}")
async def page(page_id: IdPath, viewer: ViewerDep, mark: Spans = "", format: Format = Format.HTML) -> Response:
    """One capture, or what hangs on it; ``mark`` are places in its text, as ``start-end,start-end``."""
    found = await viewer.api.get(f"/v1/pages/{page_id}")
    hanging = await viewer.api.get("/v1/pages/dependents", url=found["url"])
    results = await _dependents(viewer, hanging, str(found["url"]))
    if format is Format.CSV:
        rows = (
            (one.result_id, one.agent, one.task_id, one.answer_name, leaf.key, leaf.state, _usd(leaf))
            for one in results
            for leaf in one.leaves
        )
        return await csv_file(f"leaves-on-{page_id}", _LEAVES_CSV, rows)
    text = await viewer.api.text(f"/v1/pages/{page_id}/text")
    spans = [(int(low), int(high)) for low, _, high in (part.partition("-") for part in mark.split(",") if part)]
    return await viewer.page(
        "page.html", title=found["title"] or found["url"], here="pages", json=f"/v1/pages/{page_id}", page=found,
        pieces=None if text is None else pieces(text, spans, end=max([MOST_TEXT, *(high for _, high in spans)])),
        cut=text is not None and len(text) > MOST_TEXT, pictures=picture_numbers(found),
        dependents=hanging, results=results, urls=[found["url"]],
        csv=f"/pages/{page_id}?format=csv" if results else None,
    )  # fmt: skip


def _usd(leaf: Node) -> float | None:
    found = (leaf.facts.get("usage") or {}).get("usd")
    return None if found is None else float(found)


async def _dependents(viewer: Viewer, hanging: Mapping[str, Any], url: str) -> list[Dependent]:
    """The results with leaves that cite the page, those with the most first, and which leaves these are."""
    origins = hanging["items"][:_MOST_RESULTS]
    found = [dependent(origin, result, url) async for origin, result in results_of(viewer, origins)]
    return [one for one in found if one is not None]


@router.get("/pages/{page_id}/picture/{number}")
async def picture(page_id: IdPath, number: int, viewer: ViewerDep) -> Response:
    """One screenshot, a JPEG of ours."""
    found = await viewer.api.request("GET", f"/v1/pages/{page_id}/screenshot", params={"n": number})
    if found.is_error:
        raise NothingThere("This page has no such picture")
    # A capture never changes, and neither does its picture.
    headers = HEADERS | {"Cache-Control": "private, max-age=86400", "X-Content-Type-Options": "nosniff"}
    return Response(found.content, media_type="image/jpeg", headers=headers)


@router.post("/pages/{page_id}/recapture", dependencies=[FormCheck])
async def recapture(page_id: IdPath, request: Request, viewer: ViewerDep) -> Response:
    """Observe the page again, and show what was seen this time; to a script as JSON."""
    return _seen(request, await viewer.api.post(f"/v1/pages/{page_id}/recapture"))


@router.post("/pages/{page_id}/content", dependencies=[FormCheck])
async def hand_in(
    page_id: IdPath,
    request: Request,
    viewer: ViewerDep,
    file: Annotated[UploadFile | None, File()] = None,
    image: Annotated[UploadFile | None, File()] = None,
    text: Annotated[str, Form()] = "",
) -> Response:
    """Take what the page says by hand, for one that cannot be captured: a file, or a text and a picture."""
    fields: dict[str, FormField] = {"text": (None, text.encode(), "text/plain")} if text.strip() else {}
    for name, given in (("file", file), ("image", image)):
        if given is not None and given.size:
            fields[name] = (
                given.filename or name,
                await given.read(),
                given.content_type or "application/octet-stream",
            )
    if not fields:
        raise NothingGiven("Choose a file, or write down what the page says")
    kept = await viewer.api.put_form(f"/v1/pages/{page_id}/content", fields)
    return _seen(request, kept)


def _seen(request: Request, page: Mapping[str, Any]) -> Response:
    if not request.headers.get("HX-Request"):
        return RedirectResponse(f"/pages/{page['id']}", 303, headers=HEADERS)
    happened = "Still a problem" if page["problem"] else "Repaired"
    said = f"{happened}, {state_words(page['outcome'])}: {page['url']}"
    return JSONResponse({"url": page["url"], "said": said, "repaired": not page["problem"]}, headers=HEADERS)
