"""The page that compares two agents, two runs of one, or two results."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from app.csv_tables import Cell
from app.dashboard.comparison import Judged, TaskPair, judged, paired
from app.dashboard.downloads import Format, csv_file
from app.dashboard.errors import NothingThere
from app.dashboard.pages_route import PageRoute
from app.dashboard.scanning import newest_of_each
from app.dashboard.viewer import Viewer, ViewerDep, query_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)

SEPARATOR = "@"
"""Between an agent and its run; an agent's name has none."""
Side = Annotated[str, Query(max_length=400)]
_MOST_AGENTS = 100
_HISTORY = 2000
_MOST_RESULTS = 600
_TASKS_CSV = ("task_id", "before_low", "before_high", "now_low", "now_high", "difference", "leaves_flipped")
_CSV = ("task_id", "answer_name", "leaf", "description", "before", "after", "causes", "result_before", "result_after")


class Table(StrEnum):
    """The tables of the page."""

    FLIPS = "flips"
    TASKS = "tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Something that can be compared: an agent, or one run of it."""

    value: str
    label: str


@router.get("/compare")
async def compare_page(
    viewer: ViewerDep, a: Side = "", b: Side = "", table: Table = Table.FLIPS, format: Format = Format.HTML
) -> Response:
    """``a`` is what was before, ``b`` what is now: ``agent``, ``agent@run``, or a result's id."""
    choices = await _choices(viewer)
    compared: dict[str, Any] | None = None
    pairs: Sequence[TaskPair] = ()
    if a and b:
        before, after = await _side(viewer, a), await _side(viewer, b)
        [compared] = (await viewer.api.get("/v1/compare", a=a, b=b))["comparisons"]
        shared = {task["task_id"] for task in compared["tasks"]}
        pairs = await asyncio.to_thread(
            paired, compared["tasks"], await _read(viewer, before, shared), await _read(viewer, after, shared)
        )
    if format is Format.CSV and compared is not None:
        named = f"compare-{a}-{b}-{table}"
        if table is Table.TASKS:
            return await csv_file(named, _TASKS_CSV, map(_task_row, pairs))
        return await csv_file(named, _CSV, _csv_rows(pairs))
    query = query_of({"a": a, "b": b})
    return await viewer.page(
        "compare.html", title="Compare", here="compare", query=query,
        json=f"/v1/compare?{query}" if compared else None, csv=f"/compare?{query}&format=csv" if pairs else None,
        choices=choices, a=a, b=b, compared=compared, tasks=pairs,
        known={choice.value for choice in choices},
    )  # fmt: skip


async def _choices(viewer: Viewer) -> list[Choice]:
    board = (await viewer.api.get("/v1/leaderboard"))["items"][:_MOST_AGENTS]
    found: list[Choice] = []
    for agent in sorted(str(item["agent_name"]) for item in board):
        found.append(Choice(value=agent, label=agent))
        history = await viewer.api.items(f"/v1/agents/{agent}/history", at_most=_HISTORY)
        runs = dict.fromkeys(str(row["run"]) for row in history if row["run"])
        found += [Choice(value=f"{agent}{SEPARATOR}{run}", label=f"{agent} · run {run}") for run in runs]
    return found


async def _side(viewer: Viewer, chosen: str) -> list[dict[str, Any]]:
    """The newest result of each answer: where each comes from."""
    if chosen.startswith("res_"):
        origin = await viewer.api.maybe(f"/v1/results/{chosen}/origin")
        if origin is not None:
            return [origin]
    agent, _, run = chosen.partition(SEPARATOR)
    history = await viewer.api.items(f"/v1/agents/{agent}/history", at_most=_HISTORY)
    newest = newest_of_each(origin for origin in history if not run or origin["run"] == run)
    if not newest:
        raise NothingThere(f"No results of {chosen!r} were found")
    return newest


async def _read(viewer: Viewer, origins: Sequence[dict[str, Any]], shared: set[str]) -> list[Judged]:
    """The results of the tasks that both sides have, each cut down to what is compared."""
    found: list[Judged] = []
    for origin in [one for one in origins if one["task_id"] in shared][:_MOST_RESULTS]:
        result = await viewer.api.get(f"/v1/results/{origin['result_id']}")
        found.append(await asyncio.to_thread(judged, result))
    return found


def _task_row(task: TaskPair) -> list[Cell]:
    figures = task.figures
    ends = [figures[side][end] for side in ("a", "b") for end in ("low", "high")]
    return [task.task_id, *ends, figures["difference"]["value"], task.flips]


def _csv_rows(tasks: Sequence[TaskPair]) -> list[Sequence[Cell]]:
    return [
        (
            task.task_id, pair.after.answer_name, flip.key, flip.desc, flip.before, flip.after,
            "; ".join(f"{cause}: {detail}" for cause, detail in flip.causes),
            pair.before.result_id, pair.after.result_id,
        )
        for task in tasks
        for pair in task.answers
        for flip in pair.flips
    ]  # fmt: skip
