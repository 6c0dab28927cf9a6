"""Search page. The command palette of all pages shows its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from app.dashboard.html_route import HtmlRoute
from app.dashboard.rendering import MENU, SECTIONS
from app.dashboard.viewer import ViewerDep

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_PAGES: Final = (
    *((path, label) for _, path, label in MENU),
    *((path, label) for pages in SECTIONS.values() for _, path, label in pages[1:]),
    ("/jobs", "Jobs"),
    ("/submit", "Submit an answer"),
)
_LABELS = {"agent": "Agent", "task": "Task", "run": "Run", "result": "Result", "page": "Page"}


@router.get("/search")
async def search(viewer: ViewerDep, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Show pages of the dashboard and objects whose names contain ``q``. Without ``q``: all pages of the dashboard."""
    words = q.strip()
    found = (await viewer.api.get("/v1/search", q=words))["items"] if words else []
    entries = [
        {"kind": "Go to", "label": label, "detail": "", "path": path}
        for path, label in _PAGES
        if words.casefold() in label.casefold()
    ]
    entries += [{**one, "kind": _LABELS[one["kind"]], "path": _path(one)} for one in found]
    return await viewer.page("search.html", title="Search", q=words, entries=entries)


def _path(found: Mapping[str, Any]) -> str:
    """Return the path of the page of a found object."""
    name = quote(str(found["id"]), safe="")
    match found["kind"]:
        case "agent":
            return f"/agents/{name}"
        case "run":
            agent, _, run = str(found["id"]).partition("@")
            return f"/agents/{quote(agent, safe='')}/statistics?run={quote(run, safe='')}"
        case "task":
            return f"/tasks/{name}"
        case "result":
            return f"/results/{name}"
        case _:
            return f"/pages/{name}"
