"""Figures of agents: rows of the matrix of agents and tasks on the home page, and the figures of one agent.

Pure functions. The API computes the averages and intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from app.csv_tables import Cell
from app.dashboard.charts import TrendPoint

Interval: TypeAlias = Mapping[str, Any]
"""95 % interval over tasks from the API, with ``low``, ``high`` and ``method``."""

MAX_POINTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One run of an agent, judged by one judge. ``cells`` maps tasks to items of ``/v1/task-scores``.

    ``score`` and ``success`` are means over the shown tasks with bounds (``value``, ``low``, ``high``); None if the run
    has no answer to some of them, because means over different tasks cannot be compared.
    """

    agent: str
    run: str | None
    cells: Mapping[str, Mapping[str, Any]]
    score: Mapping[str, Any] | None
    success: Mapping[str, Any] | None
    tasks: int
    answers: int
    incomplete: int
    judge: str
    last_judged_at: str


def matrix_rows(scores: Iterable[Mapping[str, Any]], tasks: Collection[str]) -> list[MatrixRow]:
    """Return the rows of the shown ``tasks`` from the items of ``/v1/task-scores``, best first."""
    by_run: dict[tuple[str, str | None, str], dict[str, Mapping[str, Any]]] = {}
    for score in scores:
        if score["task_id"] in tasks:
            by_run.setdefault((score["agent"], score["run"], score["judge"]), {})[score["task_id"]] = score
    rows = [_row(agent, run, judge, cells, len(tasks)) for (agent, run, judge), cells in by_run.items()]
    return sorted(rows, key=lambda row: (row.score is None, -_low(row), row.agent, row.run or ""))


def _row(agent: str, run: str | None, judge: str, cells: Mapping[str, Mapping[str, Any]], tasks: int) -> MatrixRow:
    has_all = len(cells) == tasks
    return MatrixRow(
        agent=agent,
        run=run,
        cells=cells,
        score=_mean([cell["score"] for cell in cells.values()]) if has_all else None,
        success=_mean([cell["success"] for cell in cells.values()]) if has_all else None,
        tasks=len(cells),
        answers=sum(cell["answers"] for cell in cells.values()),
        incomplete=sum(cell["incomplete"] for cell in cells.values()),
        judge=judge,
        last_judged_at=max(cell["last_judged_at"] for cell in cells.values()),
    )


def _mean(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    low, high = fmean(score["low"] for score in scores), fmean(score["high"] for score in scores)
    is_certain = all(score["value"] is not None for score in scores)
    return {"value": low if is_certain else None, "low": low, "high": high}


def _low(row: MatrixRow) -> float:
    return fmean(cell["score"]["low"] for cell in row.cells.values()) if row.score is None else row.score["low"]


def judges_of(scores: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of answers by judge in the items of ``/v1/task-scores``, most first."""
    counts = Counter[str]()
    for score in scores:
        counts[score["judge"]] += score["answers"]
    return dict(counts.most_common())


def mixed_judges_warning(rows: Iterable[MatrixRow]) -> str | None:
    """Return a warning if the scores of these rows come from different judges, else None."""
    judges = sorted({row.judge for row in rows})
    if len(judges) < 2:
        return None
    return (
        f"These scores come from different judges ({', '.join(judges)}) and must not be compared, unless "
        "assay judges succession shows that scores of these judges may be mixed."
    )


def trend(rows: Iterable[MatrixRow]) -> tuple[TrendPoint, ...]:
    """Return the mean score of each complete run in the order of judging. Open scores count with their lower bound."""
    complete = sorted((row for row in rows if row.score is not None), key=lambda row: row.last_judged_at)
    return tuple(TrendPoint(row.run or "no run", _low(row)) for row in complete[-MAX_POINTS:])


def csv_header(tasks: Sequence[str]) -> list[str]:
    columns = [f"{task}_{end}" for task in tasks for end in ("low", "high")]
    return [
        "agent", "run", "mean_score_low", "mean_score_high", "success_low", "success_high", "tasks", "answers",
        "answers_not_judged", "judge", "last_judged_at", *columns,
    ]  # fmt: skip


def csv_row(row: MatrixRow, tasks: Sequence[str]) -> list[Cell]:
    ends: list[Cell] = [
        None if score is None else score[end] for score in (row.score, row.success) for end in ("low", "high")
    ]
    cells = [row.cells[task]["score"][end] if task in row.cells else None for task in tasks for end in ("low", "high")]
    return [row.agent, row.run, *ends, row.tasks, row.answers, row.incomplete, row.judge, row.last_judged_at, *cells]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What needs attention: a reason with the number of jobs, what to do, and an action.

    ``retry`` contains the ids of jobs that can be retried; ``link`` is the page with the details.
    """

    state: str
    count: str
    reason: str
    remedy: str
    link: str
    retry: tuple[str, ...] = ()
