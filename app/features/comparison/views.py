"""Dashboard page that compares two agents, runs or results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from app.api.summaries import total_judges
from app.csv_tables import Cell
from app.dashboard.downloads import Format, csv_file
from app.dashboard.html_route import HtmlRoute
from app.dashboard.viewer import Viewer, ViewerDep, query_of
from app.features.comparison.paired_comparison import direction

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

_SEPARATOR = "@"
"""Separates agent and run. Agent names cannot contain it."""
Side = Annotated[str, Query(max_length=400)]
_MAX_AGENTS = 100
_MAX_HISTORY = 2000
_MAX_FLIPS = 20_000
_TASKS_CSV = (
    "task_id",
    "baseline_low",
    "baseline_high",
    "candidate_low",
    "candidate_high",
    "difference",
    "leaves_flipped",
)
_FLIPS_CSV = (
    "task_id",
    "answer_name",
    "leaf",
    "description",
    "before",
    "after",
    "causes",
    "result_before",
    "result_after",
)


class Table(StrEnum):
    """Tables of the page that can be downloaded."""

    FLIPS = "flips"
    TASKS = "tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Selectable side: an agent, or one run of it."""

    value: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFlips:
    """Flipped leaves of one answer."""

    answer_name: str
    result_before: str
    result_after: str
    flips: Sequence[Mapping[str, Any]]


@router.get("/compare")
async def compare_page(
    viewer: ViewerDep,
    a: Side = "",
    b: Side = "",
    table: Table = Table.FLIPS,
    format: Format = Format.HTML,
    mix_judges: bool = False,
) -> Response:
    """Show the comparison of ``b`` (candidate) with ``a`` (baseline): ``agent``, ``agent@run`` or a result id each.

    Sides of different judges are compared only with ``mix_judges``.
    """
    choices = await _choices(viewer)
    compared: dict[str, Any] | None = None
    judges: dict[str, int] = {}
    if a and b:
        document = await viewer.api.get("/v1/compare", a=a, b=b, mix_judges="true")
        [compared] = document["comparisons"]
        judges = total_judges(side["judges"] for side in (document["a"], compared["b"]))
        if len(judges) > 1 and not mix_judges:
            compared = None
    if format is Format.CSV and compared is not None:
        filename = f"compare-{a}-{b}-{table}"
        if table is Table.TASKS:
            return await csv_file(filename, _TASKS_CSV, map(_task_row, compared["tasks"]))
        return await csv_file(filename, _FLIPS_CSV, map(_flip_row, await _all_flips(viewer, a, b, compared)))
    query = query_of({"a": a, "b": b, "mix_judges": "true" if mix_judges else None})
    return await viewer.page(
        "compare.html", title="Compare", here="home", tab="compare", query=query, judges=judges,
        json=f"/v1/compare?{query}" if compared else None,
        csv=f"/compare?{query}&format=csv" if compared and compared["tasks"] else None,
        choices=choices, a=a, b=b, compared=compared, by_answer=_by_answer,
        known={choice.value for choice in choices}, direction=direction(compared["tasks"]) if compared else "",
    )  # fmt: skip


async def _choices(viewer: Viewer) -> list[Choice]:
    board = (await viewer.api.get("/v1/leaderboard", mix_judges="true"))["items"][:_MAX_AGENTS]
    choices: list[Choice] = []
    for agent in sorted(str(item["agent_name"]) for item in board):
        choices.append(Choice(value=agent, label=agent))
        history = await viewer.api.items(f"/v1/agents/{agent}/history", at_most=_MAX_HISTORY)
        runs = dict.fromkeys(str(row["run"]) for row in history if row["run"])
        choices += [Choice(value=f"{agent}{_SEPARATOR}{run}", label=f"{agent} · run {run}") for run in runs]
    return choices


def _by_answer(flips: Iterable[Mapping[str, Any]]) -> list[AnswerFlips]:
    """Group the flips of one task by answer."""
    grouped: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for flip in flips:
        grouped.setdefault((flip["answer_name"], flip["result_before"], flip["result_after"]), []).append(flip)
    return [
        AnswerFlips(answer_name=name, result_before=before, result_after=after, flips=rows)
        for (name, before, after), rows in grouped.items()
    ]


async def _all_flips(viewer: Viewer, a: str, b: str, compared: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the flips of the comparison. If it leaves some out, fetch all of them."""
    if compared["flips_left_out"]:
        return await viewer.api.items("/v1/compare/flips", at_most=_MAX_FLIPS, a=a, b=b)
    return [flip for task in compared["tasks"] for flip in task["flips"]]


def _task_row(task: Mapping[str, Any]) -> list[Cell]:
    ends = [task[side][end] for side in ("a", "b") for end in ("low", "high")]
    return [task["task_id"], *ends, task["difference"]["value"], task["flipped"]]


def _flip_row(flip: Mapping[str, Any]) -> list[Cell]:
    causes = "; ".join(f"{cause['cause']}: {cause['detail']}" for cause in flip["causes"])
    cells = [flip[name] for name in ("task_id", "answer_name", "leaf", "description", "before", "after")]
    return [*cells, causes, flip["result_before"], flip["result_after"]]
