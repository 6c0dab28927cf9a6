"""Evidence repair at ``/pages``: panels of tasks, URLs and a preview, and the forms for page changes.

Everything works with links and forms. Scripts send the same requests with the header ``HX-Request`` and receive the
changed part of the page, or the outcome as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from markupsafe import Markup

from app.dashboard.answer_html import page_mark
from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import NotFound
from app.dashboard.html_route import HtmlRoute
from app.dashboard.leaf_view import screenshot_numbers
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, IdPath, IdQuery, Viewer, ViewerDep, query_of
from app.dashboard.wording import is_web_url
from assay_client import wire
from assay_client.errors import ApiError

MAX_ANSWERS = 5
MAX_TEXT_CHARS = 400_000
_MAX_CHANGES = 20
_FORBIDDEN = 403
_CITES = re.compile(r'<span data-cites="([0-9a-f ]+)"')


class View(StrEnum):
    """View of the preview."""

    SCREENSHOT = "screenshot"
    TEXT = "text"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class CitingAnswer:
    """Answer as safe HTML with the citing sentences highlighted. ``origin`` is the origin of its result in the API."""

    origin: Mapping[str, Any]
    html: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Content of the preview.

    ``cited`` is the cited URL, ``page`` its capture (None: not captured). ``text`` and ``answers`` are set only for the
    view that shows them. ``changes`` is None if the viewer may not see them.
    """

    cited: Mapping[str, Any]
    page: Mapping[str, Any] | None
    view: View
    screenshots: Sequence[int]
    text: str | None
    answers: Sequence[CitingAnswer]
    changes: Sequence[Mapping[str, Any]] | None
    dependents: Mapping[str, Any]

    @property
    def is_truncated(self) -> bool:
        return self.text is not None and len(self.text) > MAX_TEXT_CHARS

    @property
    def is_web_url(self) -> bool:
        return is_web_url(str(self.cited["url"]))


async def preview_of(viewer: Viewer, url: str, view: View) -> Preview | None:
    """Return the preview of a URL, or None if the viewer has no access to it."""
    cited_urls = (await viewer.api.get("/v1/pages/urls", url=url, limit=1))["items"]
    if not cited_urls:
        return None
    cited = cited_urls[0]
    page_id = cited["page_id"] or cited["latest_id"]
    page = None if page_id is None else await viewer.api.get_or_none(f"/v1/pages/{page_id}")
    shows_text = view is View.TEXT and page is not None
    dependents = await viewer.api.get("/v1/pages/dependents", url=cited["url"])
    return Preview(
        cited=cited,
        page=page,
        view=view,
        screenshots=screenshot_numbers(page or {}),
        text=await viewer.api.text(f"/v1/pages/{page_id}/text") if shows_text else None,
        answers=await _answers(viewer, cited["url"], dependents["items"]) if view is View.ANSWER else (),
        changes=await _changes(viewer, cited["url"]),
        dependents=dependents,
    )


async def _changes(viewer: Viewer, url: str) -> Sequence[Mapping[str, Any]] | None:
    try:
        return list((await viewer.api.get("/v1/pages/changes", url=url, limit=_MAX_CHANGES))["items"])
    except ApiError as error:
        if error.status == _FORBIDDEN:
            return None
        raise


async def _answers(viewer: Viewer, url: str, origins: Sequence[Mapping[str, Any]]) -> list[CitingAnswer]:
    mark, answers = page_mark(url), []
    for origin in origins[:MAX_ANSWERS]:
        text = await viewer.api.text(f"/v1/results/{origin['result_id']}/answer")
        if text is not None:
            rendered = await viewer.dashboard.answers.render(text)
            answers.append(CitingAnswer(origin=origin, html=_marked(rendered.html, mark)))
    return answers


def _marked(html: str, mark: str) -> Markup:
    """Highlight the sentences that cite one page."""

    def highlight(match: re.Match[str]) -> str:
        return f'{match[0]} class="on"' if mark in match[1].split() else match[0]

    return Markup(_CITES.sub(highlight, html))  # noqa: S704 - sanitized by ``AnswerRenderer``, whose text contains no tags


router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_PER_PAGE = 200
_MAX_CSV = 10_000
_MAX_WORK = 2000
_CONFLICT = 409
_CSV = ("url", "problem", "outcome", "needs_work", "flagged", "reviewed", "leaves", "open_leaves", "answers", "to_url",
        "title", "detail", "http_status", "source", "captured_at", "page_id")  # fmt: skip
_SHOWN: dict[str, dict[str, str]] = {"all": {}, "work": {"needs_work": "true"}, "deleted": {"deleted": "true"}}
_DONE_MESSAGES = {
    "add": "Added",
    "edit": "Corrected",
    "delete": "Deleted",
    "flag": "Flagged",
    "unflag": "Flag removed",
    "review": "Reviewed",
    "unreview": "Review removed",
}
Task = Annotated[str | None, Query(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,99})?$")]
Show = Annotated[str, Query(pattern="^(all|work|deleted)$")]
UrlText = Annotated[str, Query(max_length=4096)]
UrlField = Annotated[str, Form(max_length=4096)]
ShortText = Annotated[str, Form(max_length=1000)]


async def _state(task: Task = None, show: Show = "all", view: View = View.SCREENSHOT) -> dict[str, str]:
    """Return the state of the panels, as in their address."""
    return {"task": task or "", "show": show, "view": view.value}


State = Annotated[dict[str, str], Depends(_state)]


@router.get("/pages")
async def panels(
    viewer: ViewerDep,
    state: State,
    url: UrlText = "",
    cursor: IdQuery = None,
    done: IdQuery = None,
    format: Format = Format.HTML,
) -> Response:
    """Show the three panels. ``url`` is the URL of the preview, ``done`` the id of the change just made."""
    filters = _filters(state)
    if format is Format.CSV:
        cited_urls = await viewer.api.items("/v1/pages/urls", at_most=_MAX_CSV, **filters)
        return await csv_file("pages", _CSV, ([cited[name] for name in _CSV] for cited in cited_urls))
    lists = await _lists(viewer, state, cursor)
    chosen = url or next((cited["url"] for cited in lists["urls"]), "")
    preview = await preview_of(viewer, chosen, View(state["view"])) if chosen else None
    return await viewer.page(
        "pages.html", title="Pages", here="pages", json=f"/v1/pages/urls?{query_of(filters)}",
        csv=f"/pages?{urlencode(state)}&format=csv", preview=preview, done=done,
        chosen=None if preview is None else preview.cited["key"], **lists,
    )  # fmt: skip


@router.get("/pages/lists")
async def lists(viewer: ViewerDep, state: State, url: UrlText = "") -> Response:
    """Return the panels of tasks and URLs."""
    lists = await _lists(viewer, state)
    chosen = next((cited["key"] for cited in lists["urls"] if cited["url"] == url), None)
    return await viewer.fragment("page_lists.html", chosen=chosen, **lists)


@router.get("/pages/preview")
async def preview(viewer: ViewerDep, url: UrlText, state: State) -> Response:
    """Return the preview of one URL."""
    page_preview = await preview_of(viewer, url, View(state["view"]))
    if page_preview is None:
        raise NotFound("No task has this URL")
    return await viewer.fragment("page_preview.html", preview=page_preview, state=state, address=_address)


@router.get("/pages/work")
async def work(viewer: ViewerDep, task: Task = None) -> Response:
    """Return the captured URLs that need work, most important first. The script captures them again."""
    cited = await viewer.api.items("/v1/pages/urls", at_most=_MAX_WORK, task_id=task or None, needs_work="true")
    items = [{"url": one["url"], "page": one["latest_id"] or one["page_id"]} for one in cited]
    return JSONResponse([item for item in items if item["page"]], headers=HEADERS)


@router.get("/pages/dependents")
async def dependents(viewer: ViewerDep, url: Annotated[list[UrlText], Query(max_length=200)]) -> Response:
    """Return the dependents of repaired pages and the cost of their last judging."""
    return await viewer.fragment("page_rejudge.html", dependents=await _dependents(viewer, url), urls=url)


async def _change(
    action: Annotated[str, Form(pattern="^[a-z]{1,10}$")],
    url: UrlField,
    to: UrlField = "",
    task_id: ShortText = "",
    reason: ShortText = "",
    by: ShortText = "",
) -> dict[str, str]:
    """Return the page change of a form."""
    change = {"action": action, "url": url, "reason": reason, "by": by[:100]}
    return change | {"edit": {"to": to}, "add": {"task_id": task_id}}.get(action, {})


@router.post("/pages/changes", dependencies=[FormCheck])
async def change(
    request: Request, viewer: ViewerDep, change: Annotated[dict[str, str], Depends(_change)], state: ShortText = ""
) -> Response:
    """Make a page change."""
    action, url = change["action"], change["url"]
    page_change = await viewer.api.post("/v1/pages/changes", change)
    message = f"{_DONE_MESSAGES.get(action, action)}: {page_change['url']}"
    next_url = url if action != "delete" else ""
    return _respond(request, state, url=next_url, done=page_change["id"], message=message, repaired=action == "edit")


@router.post("/pages/changes/{change_id}/undo", dependencies=[FormCheck])
async def undo(request: Request, change_id: IdPath, viewer: ViewerDep, state: ShortText = "") -> Response:
    """Undo a page change."""
    page_change = await viewer.api.post(f"/v1/pages/changes/{change_id}/undo")
    return _respond(request, state, url=page_change["url"], message=f"Undone: {page_change['url']}")


@router.post("/pages/judge-again", dependencies=[FormCheck])
async def judge_again(request: Request, viewer: ViewerDep, url: Annotated[list[UrlField], Form()]) -> Response:
    """Retry the jobs of all answers whose newest result cites one of these pages.

    Jobs that have not ended are left alone, because they use the repaired pages anyway.
    """
    dependents = await _dependents(viewer, url[:_PER_PAGE])
    for item in dependents["items"]:
        response = await viewer.api.request("POST", f"/v1/jobs/{item['job_id']}/retry")
        if response.is_error and response.status_code != _CONFLICT:
            wire.read_json(response)
    if request.headers.get("HX-Request"):
        started, total = len(dependents["items"]), dependents["answers"]
        number = f"{started}" if started == total else f"{started} of {total}"
        message = f"{number} {'answer is' if total == 1 else 'answers are'} being judged again"
        return JSONResponse({"message": message}, headers=HEADERS)
    return RedirectResponse("/jobs", 303, headers=HEADERS)


def _filters(state: Mapping[str, str]) -> dict[str, str | None]:
    """Return the filters of the API for the URLs that the panels list."""
    return {"task_id": state["task"] or None, **_SHOWN[state["show"]]}


async def _lists(viewer: Viewer, state: Mapping[str, str], cursor: str | None = None) -> dict[str, Any]:
    """Return the values of the panels of tasks and URLs."""
    listed = await viewer.api.get("/v1/pages/urls", limit=_PER_PAGE, cursor=cursor, **_filters(state))
    tasks = (await viewer.api.get("/v1/pages/tasks"))["items"]
    urls, following = listed["items"], listed["next_cursor"]
    return {"tasks": tasks, "urls": urls, "following": following, "state": state, "address": _address}


async def _dependents(viewer: Viewer, urls: list[str]) -> Any:
    params = [("url", url) for url in urls]
    response = await viewer.api.request("GET", f"/v1/pages/dependents?{urlencode(params)}")
    return wire.read_json(response)


def _respond(request: Request, state: str, **outcome: Any) -> Response:
    """Return the outcome as JSON to a script, otherwise redirect to the panels."""
    if request.headers.get("HX-Request"):
        return JSONResponse(outcome, headers=HEADERS)
    params = {name: str(outcome[name]) for name in ("url", "done") if outcome.get(name)}
    before = [(name, value) for name, value in parse_qsl(state) if name in ("task", "show", "view")]
    return RedirectResponse(f"/pages?{urlencode([*before, *params.items()])}", 303, headers=HEADERS)


def _address(state: dict[str, str], **changes: str) -> str:
    """Return the URL of the panels in another state."""
    return f"/pages?{urlencode({**state, **changes})}"
