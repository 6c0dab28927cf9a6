"""Headline figures of an agent with confidence intervals, as JSON values. Pure functions.

The formulas are in ``judges.analysis.statistics``. The first call imports numpy and scipy, so do not call it on an
event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.agent_summary import AnswerOutcome, agent_summary, score_of
from judges.analysis.statistics.headline import Figure, Headline, PassEstimate, Trial, headline
from judges.analysis.statistics.interval import LEVEL, Interval
from judges.public_summary import Summary


def full_summary(
    agent: str, outcomes: Iterable[AnswerOutcome], *, unfinished: int = 0, resampled: bool = True
) -> Summary:
    """Return the summary of an agent and its ``statistics``. ``unfinished`` is the number of unfinished jobs."""
    known = list(outcomes)
    statistics = statistics_json(known, resampled=resampled)
    return agent_summary(agent, known) | {"unfinished": unfinished, "statistics": statistics}


def statistics_json(outcomes: Sequence[AnswerOutcome], *, resampled: bool = True) -> dict[str, Any] | None:
    """Return the headline figures with bounds and intervals, or None without answers.

    ``resampled`` adds the bootstrap intervals, which take about 0.1 s per agent.
    """
    figures = headline([trial_of(outcome) for outcome in outcomes], resampled=resampled)
    if figures is None:
        return None
    not_judged = sum(not outcome.complete for outcome in outcomes)
    return {
        "level": LEVEL,
        "tasks": figures.tasks,
        "answers": figures.answers,
        "not_judged": {"answers": not_judged, "share": not_judged / figures.answers},
        **_figures(figures),
        "smallest_detectable_difference": figures.detectable,
        "warnings": list(figures.warnings),
    }


def trial_of(outcome: AnswerOutcome) -> Trial:
    score = score_of(outcome.result)
    return Trial(task_id=outcome.task_id, run=outcome.answer_name, low=score.low, high=score.high)


def interval_json(interval: Interval | None) -> Mapping[str, Any] | None:
    return None if interval is None else asdict(interval)


def _figures(figures: Headline) -> dict[str, Any]:
    return {
        "score": _figure(figures.score),
        "success": _figure(figures.success),
        "pass_at_k": [_pass_estimate(each) for each in figures.pass_at],
        "pass_hat_k": [_pass_estimate(each) for each in figures.pass_hat],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "tasks": figure.tasks,
        "interval": interval_json(figure.interval),
        "student_t": interval_json(figure.student),
        "bootstrap": interval_json(figure.bootstrap),
    }


def _pass_estimate(estimate: PassEstimate) -> dict[str, Any]:
    return {
        "k": estimate.k,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "tasks": estimate.tasks,
        "interval": interval_json(estimate.interval),
    }
