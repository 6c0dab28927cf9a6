"""Dashboard pages of rescores: list with a form, and old and new scores side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse

from app.csv_tables import Cell
from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import EmptyForm
from app.dashboard.html_route import HtmlRoute
from app.dashboard.jobs import TERMINAL, IdPath, IdQuery
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, ViewerDep

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_PER_PAGE = 50
_MAX_AGENTS = 200
_CSV = ("agent", "task_id", "answer_name", "before_low", "before_high", "now_low", "now_high", "reused", "asked",
        "flipped", "result_before", "result_now")  # fmt: skip


@router.get("/rescores")
async def rescores(viewer: ViewerDep, cursor: IdQuery = None) -> Response:
    """List the rescores, newest first, below a form for a new one."""
    listed = await viewer.api.get("/v1/rescores", limit=_PER_PAGE, cursor=cursor)
    tasks = (await viewer.api.get("/v1/tasks"))["items"]
    board = (await viewer.api.get("/v1/leaderboard", mix_judges="true"))["items"][:_MAX_AGENTS]
    return await viewer.page(
        "rescores.html", title="Rescores", here="tasks", tab="rescores", json="/v1/rescores", rescores=listed["items"],
        following=listed["next_cursor"], tasks=sorted(str(task["task_id"]) for task in tasks),
        agents=sorted(str(row["agent_name"]) for row in board),
    )  # fmt: skip


@router.post("/rescores", dependencies=[FormCheck])
async def start(
    viewer: ViewerDep,
    task_id: Annotated[str, Form()] = "",
    agent: Annotated[str, Form()] = "",
    budget_usd: Annotated[str, Form()] = "",
    capture: Annotated[bool, Form()] = False,
) -> Response:
    """Start a rescore of a task, an agent or both."""
    body: dict[str, Any] = {name: value for name, value in (("task_id", task_id), ("agent", agent)) if value}
    if not body:
        raise EmptyForm("Select a task or an agent.")
    if budget_usd.strip():
        try:
            body["budget_usd"] = float(budget_usd)
        except ValueError:
            raise EmptyForm("The budget is not a number. Give it in US dollars, for example 0.50.") from None
    accepted = await viewer.api.post("/v1/rescores", {**body, "capture": capture})
    return RedirectResponse(f"/rescores/{accepted['id']}", 303, headers=HEADERS)


@router.get("/rescores/{rescore_id}")
async def rescore(rescore_id: IdPath, viewer: ViewerDep, format: Format = Format.HTML) -> Response:
    """Show old and new scores side by side."""
    found = await viewer.api.get(f"/v1/rescores/{rescore_id}")
    if format is Format.CSV:
        return await csv_file(f"rescore-{rescore_id}", _CSV, map(_row, found["answers"]))
    return await viewer.page(
        "rescore.html", title="Rescore", here="tasks", json=f"/v1/rescores/{rescore_id}",
        csv=f"/rescores/{rescore_id}?format=csv", rescore=found,
        progress=_progress(each["status"] for each in found["answers"]),
        paused=next((each for each in found["answers"] if each["stage"] == "paused"), None),
    )  # fmt: skip


@router.post("/rescores/{rescore_id}/cancel", dependencies=[FormCheck])
async def cancel(rescore_id: IdPath, viewer: ViewerDep) -> Response:
    """Cancel the unfinished jobs of a rescore."""
    await viewer.api.post(f"/v1/rescores/{rescore_id}/cancel")
    return RedirectResponse(f"/rescores/{rescore_id}", 303, headers=HEADERS)


def _progress(statuses: Iterable[str]) -> dict[str, int]:
    known = list(statuses)
    return {"ended": sum(status in TERMINAL for status in known), "total": len(known)}


def _row(answer: Mapping[str, Any]) -> list[Cell]:
    scores = [answer[side] and answer[side]["score"] for side in ("before", "after")]
    ends = [None if score is None else score[end] for score in scores for end in ("low", "high")]
    results = [answer[side] and answer[side]["result_id"] for side in ("before", "after")]
    names = [answer[name] for name in ("agent", "task_id", "answer_name")]
    return [*names, *ends, answer["reused"], answer["asked"], answer["flipped"], *results]
