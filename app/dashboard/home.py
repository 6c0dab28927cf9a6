"""Home page (all agents and running jobs) and the page of one agent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import NotFound
from app.dashboard.html_route import HtmlRoute
from app.dashboard.leaderboard import (
    CSV_HEADER,
    AgentFigures,
    agent_figures,
    csv_row,
    judges_of_agents,
    mixed_judges_warning,
)
from app.dashboard.viewer import Viewer, ViewerDep, query_of

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
NamePath = Annotated[str, Path(pattern=NAME_PATTERN)]
_MAX_AGENTS = 100
_MAX_OPEN_JOBS = 200
_HISTORY = 400
_AGENT_HISTORY = 1000


@router.get("/")
async def home(viewer: ViewerDep, format: Format = Format.HTML, judge: str = "", mix_judges: bool = False) -> Response:
    """Show the figures of all agents, best first. Of several judges, only those of one count, unless ``mix_judges``.

    The default is the judge with the most answers.
    """
    board = (await viewer.api.get("/v1/leaderboard", mix_judges="true"))["items"]
    judges = judges_of_agents(board)
    if len(judges) > 1 and not mix_judges:
        judge = judge if judge in judges else next(iter(judges))
        board = (await viewer.api.get("/v1/leaderboard", judge=judge))["items"]
    query = query_of({"mix_judges": "true"} if mix_judges else {"judge": judge})
    rows = [await _row(viewer, item) for item in board[:_MAX_AGENTS]]
    if len(judges) > 1:
        rows = [replace(row, trend=()) for row in rows]  # the history of an agent does not name the judges
    rows.sort(key=lambda row: (-(row.partial or 0.0), row.agent))
    if format is Format.CSV:
        return await csv_file("agents", CSV_HEADER, map(csv_row, rows))
    running = await open_submissions(viewer)
    tasks = [] if rows else (await viewer.api.get("/v1/tasks"))["items"]
    warnings = (await viewer.api.get("/v1/providers"))["warnings"]
    mixed = mixed_judges_warning(rows)
    return await viewer.page(
        "home.html", title="Agents", here="home", json=f"/v1/leaderboard?{query}", csv=f"/?{query}&format=csv",
        rows=rows, judges=judges, judge=judge, running=running, tasks=tasks,
        warnings=[*warnings, *([mixed] if mixed else [])], is_mixed=mixed is not None,
    )  # fmt: skip


@router.get("/running")
async def running(viewer: ViewerDep) -> Response:
    """Return the running jobs of the home page, which the browser polls."""
    return await viewer.fragment("running.html", running=await open_submissions(viewer))


@router.get("/agents/{agent}")
async def agent(agent: NamePath, viewer: ViewerDep, format: Format = Format.HTML) -> Response:
    """Show one agent: figures and results."""
    summary, history = await asyncio.gather(
        viewer.api.get_or_none(f"/v1/agents/{agent}/summary", mix_judges="true"),
        viewer.api.items(f"/v1/agents/{agent}/history", at_most=_AGENT_HISTORY),
    )
    if summary is None:
        raise NotFound(f"Agent {agent!r} has no judged answers")
    if format is Format.CSV:
        header = (
            "task_id",
            "answer_name",
            "run",
            "final_score",
            "status",
            "result_id",
            "job_id",
            "model",
            "created_at",
        )
        return await csv_file(agent, header, ([row[name] for name in header] for row in history))
    row = agent_figures(summary, history)
    return await viewer.page(
        "agent.html", title=agent, here="home", json=f"/v1/agents/{agent}/summary?mix_judges=true",
        csv=f"/agents/{agent}?format=csv",
        row=row, mixed=mixed_judges_warning([row]), summary=summary, history=history, runs=_runs(history),
    )  # fmt: skip


async def open_submissions(viewer: Viewer) -> list[dict[str, Any]]:
    """Return the submissions with unfinished jobs, newest first, with job counts and total progress."""
    jobs = await viewer.api.items("/v1/jobs", at_most=_MAX_OPEN_JOBS, status="running")
    jobs += await viewer.api.items("/v1/jobs", at_most=_MAX_OPEN_JOBS, status="queued")
    groups: dict[str, list[dict[str, Any]]] = {}
    for job in sorted(jobs, key=lambda job: str(job["id"]), reverse=True):
        groups.setdefault(str(job["submission_id"]), []).append(job)
    return [
        {
            "id": submission_id,
            "agent": members[0]["agent"],
            "task_id": members[0]["task_id"],
            "jobs": members,
            "running": sum(job["status"] == "running" for job in members),
            "queued": sum(job["status"] == "queued" for job in members),
            "paused": sum(job["stage"] == "paused" for job in members),
            "done": sum(job["progress"]["leaves_done"] + job["progress"]["pages_done"] for job in members),
            "total": sum(job["progress"]["leaves_total"] + job["progress"]["pages_total"] for job in members),
        }
        for submission_id, members in groups.items()
    ]


async def _row(viewer: Viewer, item: dict[str, Any]) -> AgentFigures:
    """Return a row of the leaderboard with its trend."""
    history = await viewer.api.items(f"/v1/agents/{item['agent_name']}/history", at_most=_HISTORY)
    return agent_figures(item, history)


def _runs(history: list[dict[str, Any]]) -> list[str]:
    """Return the names of runs, newest first."""
    return list(dict.fromkeys(str(row["run"]) for row in history if row["run"]))
