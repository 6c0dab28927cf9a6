"""Dashboard pages of tasks: list, and one task with rubric, scores and the text of its file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter, Response

from app.csv_tables import Cell
from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import NotFound
from app.dashboard.html_route import HtmlRoute
from app.dashboard.outline import Node
from app.dashboard.viewer import NamePath, ViewerDep

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_TASKS_CSV: Final = ("task_id", "description", "version", "kind", "error")
_SCORES_CSV: Final = ("agent", "run", "answers", "low", "high")
_MAX_ANSWERS: Final = 200


@router.get("/tasks")
async def tasks(viewer: ViewerDep, format: Format = Format.HTML) -> Response:
    """List all tasks with the mean scores of the agents."""
    listed = (await viewer.api.get("/v1/tasks"))["items"]
    scores: dict[str, list[dict[str, Any]]] = {}
    for score in (await viewer.api.get("/v1/task-scores"))["items"]:
        scores.setdefault(score["task_id"], []).append(score)
    if format is Format.CSV:
        rows = ((one, score) for one in listed for score in scores.get(one["task_id"], [{}]))
        return await csv_file("tasks", (*_TASKS_CSV, *_SCORES_CSV), (_task_row(*row) for row in rows))
    return await viewer.page(
        "tasks.html", title="Tasks", here="tasks", json="/v1/tasks", csv="/tasks?format=csv",
        tasks=listed, scores=scores,
    )  # fmt: skip


def _task_row(task: Mapping[str, Any], score: Mapping[str, Any]) -> list[Cell]:
    return [*(task.get(name) for name in _TASKS_CSV), *_score_row(score)]


def _score_row(score: Mapping[str, Any]) -> list[Cell]:
    mean = score.get("score") or {}
    return [score.get("agent"), score.get("run"), score.get("answers"), mean.get("low"), mean.get("high")]


@router.get("/tasks/{task_id}")
async def task(task_id: NamePath, viewer: ViewerDep, format: Format = Format.HTML) -> Response:
    """Show one task: question, version, rubric, file, and scores per agent."""
    found = await viewer.api.get_or_none(f"/v1/tasks/{task_id}")
    if found is None:
        raise NotFound(f"No task file exists for {task_id!r}")
    file = await viewer.api.get_or_none(f"/v1/tasks/{task_id}/file")
    scores = (await viewer.api.get("/v1/task-scores", task_id=task_id))["items"]
    if format is Format.CSV:
        return await csv_file(f"task-{task_id}", _SCORES_CSV, map(_score_row, scores))
    answers = await viewer.api.items(f"/v1/tasks/{task_id}/answers", at_most=_MAX_ANSWERS)
    tree: Sequence[Mapping[str, Any]] = ()
    if file is not None:
        tree = _nested(file["nodes"])
    elif answers:
        cached = await viewer.dashboard.results.get(viewer.api, answers[0]["result_id"])
        tree = [_judged_node(child) for child in cached.tree.outline.root.children]
    return await viewer.page(
        "task.html", title=task_id, here="tasks", json=f"/v1/tasks/{task_id}",
        csv=f"/tasks/{task_id}?format=csv" if scores else None, task=found, file=file, tree=tree,
        scores=scores, answers=answers,
    )  # fmt: skip


def _nested(nodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the nodes of a file as a tree."""
    top: list[dict[str, Any]] = []
    levels = [top]
    for node in nodes:
        del levels[node["depth"] + 1 :]
        below: list[dict[str, Any]] = []
        levels[-1].append({**node, "below": below})
        levels.append(below)
    return top


def _judged_node(node: Node) -> dict[str, Any]:
    """Return a node of a result in the form of ``_nested``."""
    claim = node.fields.get("claim")
    return {
        "id": node.name,
        "kind": node.strategy if node.children else "claim" if claim else "check",
        "line": None,
        "values": {"description": node.desc, "weight": node.weight, "critical": node.critical},
        "sources": "",
        "gated": False,
        "below": [_judged_node(child) for child in node.children],
    }
