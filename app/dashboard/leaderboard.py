"""Rows of the home page: figures of an agent with bounds, intervals and trend.

Pure functions. The API computes the averages and intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from app.csv_tables import Cell
from app.dashboard.charts import TrendPoint
from app.dashboard.wording import parse_time

Interval: TypeAlias = Mapping[str, Any]
"""95 % interval over tasks from the API, with ``low``, ``high`` and ``method``."""

MAX_POINTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFigures:
    """Figures of one agent. Rates are in 0..1; ``bounds`` are those of the API by name (score, success, pass_at_k)."""

    agent: str
    partial: float | None
    success: float | None
    pass_at_k: float | None
    k: int
    tasks: int
    answers: int
    not_judged: int
    leaves_not_judged: int
    without_result: int
    usd: float | None
    seconds: float
    bounds: Mapping[str, Any]
    partial_interval: Interval | None
    success_interval: Interval | None
    pass_interval: Interval | None
    warnings: Sequence[str]
    trend: tuple[TrendPoint, ...]
    last_judged_at: str | None
    judges: tuple[str, ...] = ()

    @property
    def not_judged_share(self) -> float | None:
        return self.not_judged / self.answers if self.answers else None


def agent_figures(summary: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> AgentFigures:
    """Return the row of an agent from its summary or leaderboard entry, and its results (newest first)."""
    k = int(summary.get("num_runs") or 0)
    # Without a result there is no average and so no interval; the bounds are 0 and 1.
    figures = (summary.get("statistics") or {}) if summary.get("avg_score") is not None else {}
    missing = summary.get("not_judged") or {}
    return AgentFigures(
        agent=str(summary["agent_name"]),
        partial=summary.get("avg_score"),
        success=summary.get("success_rate"),
        pass_at_k=summary.get(f"pass_at_{k}"),
        k=k,
        tasks=int(summary.get("num_tasks") or 0),
        answers=int(summary.get("num_answers") or 0),
        not_judged=int(missing.get("answers") or 0),
        leaves_not_judged=int(missing.get("leaves") or 0),
        without_result=int(missing.get("without_result") or 0),
        usd=(summary.get("usage") or {}).get("usd"),
        seconds=float(summary.get("seconds") or 0.0),
        bounds=summary.get("bounds") or {},
        partial_interval=(figures.get("score") or {}).get("interval"),
        success_interval=(figures.get("success") or {}).get("interval"),
        pass_interval=_pass_interval(figures, k),
        warnings=figures.get("warnings") or (),
        trend=trend(history),
        last_judged_at=str(history[0]["created_at"]) if history else None,
        judges=tuple(summary.get("judges") or ()),
    )


def judges_of_agents(summaries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the number of answers by judge over the summaries of several agents, most first."""
    return dict(sum((Counter(summary["judges"]) for summary in summaries), Counter[str]()).most_common())


def mixed_judges_warning(rows: Iterable[AgentFigures]) -> str | None:
    """Return a warning if the figures of these agents come from different judges, else None."""
    judges = sorted({judge for row in rows for judge in row.judges})
    if len(judges) < 2:
        return None
    return (
        f"These scores come from different judges ({', '.join(judges)}) and must not be compared, unless "
        "assay judges succession shows that scores of these judges may be mixed."
    )


def _pass_interval(figures: Mapping[str, Any], k: int) -> Interval | None:
    """Return the interval of pass@k, or None if some tasks have fewer than ``k`` answers: then the figures differ."""
    for one in figures.get("pass_at_k") or ():
        if one["k"] == k and one["tasks"] == figures["tasks"]:
            interval: Interval | None = one["interval"]
            return interval
    return None


def trend(history: Sequence[Mapping[str, Any]]) -> tuple[TrendPoint, ...]:
    """Return the mean score of each run in the order of judging. Results without a run are grouped by day."""
    groups: dict[str, list[float]] = {}
    for origin in reversed(history):
        created_at = parse_time(origin["created_at"])
        label = origin.get("run") or (f"{created_at:%Y-%m-%d}" if created_at else "?")
        groups.setdefault(str(label), []).append(float(origin["final_score"]))
    return tuple(TrendPoint(label, fmean(scores)) for label, scores in list(groups.items())[-MAX_POINTS:])


CSV_HEADER = (
    "agent", "partial_completion", "partial_low_95", "partial_high_95", "success_rate", "success_low_95",
    "success_high_95", "pass_at_k", "k", "tasks", "answers", "answers_not_judged", "leaves_not_judged", "usd",
    "seconds", "judges",
)  # fmt: skip


def csv_row(row: AgentFigures) -> list[Cell]:
    return [
        row.agent, row.partial, *_ends(row.partial_interval), row.success, *_ends(row.success_interval), row.pass_at_k,
        row.k, row.tasks, row.answers, row.not_judged, row.leaves_not_judged, row.usd, row.seconds,
        ", ".join(row.judges),
    ]  # fmt: skip


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval["low"], interval["high"])
