"""Dashboard pages of jobs and submissions, with live updates, cancel and retry."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from app.csv_tables import Cell
from app.dashboard.downloads import Format, csv_file
from app.dashboard.html_route import HtmlRoute
from app.dashboard.rendering import HEADERS
from app.dashboard.viewer import FormCheck, IdPath, IdQuery, Viewer, ViewerDep, query_of, viewer_of
from assay_client.errors import ClientError

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")
TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
_PER_PAGE = 50
_MAX_CSV = 10_000
_CSV = ("id", "status", "stage", "agent", "task_id", "answer", "run", "model", "attempts", "result_id", "created_at",
        "started_at", "finished_at")  # fmt: skip
_PROGRESS_CSV = ("pages_done", "pages_total", "leaves_done", "leaves_total")
_RECONNECT_MS = 3000


@router.get("/jobs")
async def jobs(
    viewer: ViewerDep,
    status: Annotated[str | None, Query(pattern=f"^({'|'.join(STATUSES)})?$")] = None,
    agent: str | None = None,
    task_id: str | None = None,
    cursor: IdQuery = None,
    format: Format = Format.HTML,
) -> Response:
    """List jobs, newest first."""
    chosen = {"status": status or None, "agent": agent or None, "task_id": task_id or None}
    if format is Format.CSV:
        items = await viewer.api.items("/v1/jobs", at_most=_MAX_CSV, **chosen)
        return await _csv("jobs", items)
    query = query_of(chosen)
    listed = await viewer.api.get("/v1/jobs", limit=_PER_PAGE, cursor=cursor, **chosen)
    return await viewer.page(
        "jobs.html", title="Jobs", here="jobs", json=f"/v1/jobs?{query}", csv=f"/jobs?format=csv&{query}",
        jobs=listed["items"], following=listed["next_cursor"], chosen=chosen, statuses=STATUSES, query=query,
    )  # fmt: skip


@router.get("/events")
async def events(request: Request) -> Response:
    """Stream an event ``changed`` when the stream opens and after each batch of changes of any job."""

    async def changes(viewer: Viewer) -> AsyncIterator[bytes]:
        async for _ in viewer.api.events("/v1/jobs/events"):
            yield _event("changed", "")

    return await _stream(request, changes, check="/v1/jobs?limit=1")


@router.get("/jobs/{job_id}")
async def job(job_id: IdPath, viewer: ViewerDep) -> Response:
    """Show one job, with live updates until it has ended."""
    job_json = await viewer.api.get(f"/v1/jobs/{job_id}")
    return await viewer.page(
        "job.html", title=f"{job_json['agent']} · {job_json['task_id']}", here="jobs", json=f"/v1/jobs/{job_id}",
        job=job_json, live=job_json["status"] not in TERMINAL,
    )  # fmt: skip


@router.get("/jobs/{job_id}/events")
async def job_events(job_id: IdPath, request: Request) -> Response:
    """Stream the job panel as HTML after every change."""

    async def rendered(viewer: Viewer) -> AsyncIterator[bytes]:
        async for event in viewer.api.events(f"/v1/jobs/{job_id}/events"):
            yield _event("panel", viewer.dashboard.renderer.fragment("job_panel.html", job=event, viewer=viewer))
        yield _event("end", "")

    return await _stream(request, rendered, check=f"/v1/jobs/{job_id}")


@router.post("/jobs/{job_id}/{action}", dependencies=[FormCheck])
async def act(job_id: IdPath, action: Annotated[str, Path(pattern="^(cancel|retry)$")], viewer: ViewerDep) -> Response:
    """Cancel or retry a job, then redirect to its page."""
    await viewer.api.post(f"/v1/jobs/{job_id}/{action}")
    return RedirectResponse(f"/jobs/{job_id}", 303, headers=HEADERS)


@router.get("/submissions/{submission_id}")
async def submission(submission_id: IdPath, viewer: ViewerDep, format: Format = Format.HTML) -> Response:
    """Show a submission with all its jobs."""
    stored = await viewer.api.get(f"/v1/submissions/{submission_id}")
    members = (await viewer.api.items("/v1/jobs", at_most=_MAX_CSV, submission_id=submission_id))[::-1]
    if format is Format.CSV:
        return await _csv(submission_id, members)
    return await viewer.page(
        "submission.html", title=f"{stored['agent']} · {stored['task_id']}", here="jobs",
        json=f"/v1/submissions/{submission_id}", csv=f"/submissions/{submission_id}?format=csv", submission=stored,
        jobs=members,
    )  # fmt: skip


async def _stream(request: Request, rendered: Any, *, check: str) -> Response:
    """Return an event stream that keeps its viewer open. Missing or forbidden objects raise before it starts."""
    viewers = viewer_of(request)
    viewer = await anext(viewers)
    try:
        await viewer.api.get(check)
    except BaseException:  # cancellation too must close the viewer
        await viewers.aclose()  # type: ignore[attr-defined]  # an async generator
        raise

    async def events() -> AsyncIterator[bytes]:
        try:
            yield f"retry: {_RECONNECT_MS}\n\n".encode()
            async for event in rendered(viewer):
                yield event
        except ClientError:
            return  # the browser reconnects and receives the error then
        finally:
            await viewers.aclose()  # type: ignore[attr-defined]

    return StreamingResponse(events(), media_type="text/event-stream", headers=HEADERS)


def _event(name: str, html: str) -> bytes:
    return f"event: {name}\ndata: {json.dumps(html)}\n\n".encode()


async def _csv(name: str, jobs: list[dict[str, Any]]) -> Response:
    header = (*_CSV, *_PROGRESS_CSV, "score_low", "score_high", "error")
    return await csv_file(name, header, map(_csv_row, jobs))


def _csv_row(job: dict[str, Any]) -> list[Cell]:
    error = job["error"]["code"] if job["error"] else None
    score = job["score"] or {"low": None, "high": None}
    progress = (job["progress"][name] for name in _PROGRESS_CSV)
    return [*(job[name] for name in _CSV), *progress, score["low"], score["high"], error]
