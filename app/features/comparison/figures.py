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
    found = headline([trial_of(one) for one in outcomes], resampled=resampled)
    if found is None:
        return None
    not_judged = sum(not one.complete for one in outcomes)
    return {
        "level": LEVEL,
        "tasks": found.tasks,
        "answers": found.answers,
        "not_judged": {"answers": not_judged, "share": not_judged / found.answers},
        **_figures(found),
        "smallest_detectable_difference": found.detectable,
        "warnings": list(found.warnings),
    }


def trial_of(outcome: AnswerOutcome) -> Trial:
    score = score_of(outcome.result)
    return Trial(task_id=outcome.task_id, run=outcome.answer_name, low=score.low, high=score.high)


def interval_json(found: Interval | None) -> Mapping[str, Any] | None:
    return None if found is None else asdict(found)


def _figures(found: Headline) -> dict[str, Any]:
    return {
        "score": _figure(found.score),
        "success": _figure(found.success),
        "pass_at_k": [_pass_estimate(each) for each in found.pass_at],
        "pass_hat_k": [_pass_estimate(each) for each in found.pass_hat],
    }


def _figure(found: Figure) -> dict[str, Any]:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "tasks": found.tasks,
        "interval": interval_json(found.interval),
        "student_t": interval_json(found.student),
        "bootstrap": interval_json(found.bootstrap),
    }


def _pass_estimate(found: PassEstimate) -> dict[str, Any]:
    return {
        "k": found.k,
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "tasks": found.tasks,
        "interval": interval_json(found.interval),
    }
