"""Report of a Mind2Web run: figures, their bounds and 95 % intervals, ranking quality.

Figures appear under official and descriptive names, and for both policies for steps without a positive. A figure is
None if any step was not judged; ``bounds`` then contains its lowest and highest value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from judges.suites.intervals import task_bootstrap_intervals, task_success_interval
from judges.suites.metrics import GroupScore, Rates, ScoreBounds, StepScore, SuiteScore, bounds
from judges.suites.mind2web.candidates import RankingMetrics
from judges.suites.mind2web.official import official_results
from judges.suites.mind2web.rules import WITHOUT_POSITIVE, Metric, NoPositive

Scored = Mapping[str, Any]
"""Record of a step.

Keys: ``task_id``, ``website``, ``domain``, ``judged``, ``unplayed`` (None or an ``Unplayed`` value), ``positive_ranks``
and, if judged, ``element``, ``op_f1``, ``action`` (0 or 1: correct operation, ignoring the value).
"""


def report(
    steps: Sequence[Scored],
    *,
    metric: Metric,
    no_positive: NoPositive,
    top_k: int,
    seed: int,
    compat_trailing: bool = False,
) -> dict[str, Any]:
    """Return the figures of all steps, which are given in the order of the data."""
    by_policy = {policy: bounds(_scores(steps, metric, policy)) for policy in NoPositive}
    chosen, scores = by_policy[no_positive], _scores(steps, metric, no_positive)
    certain = chosen.certain
    return {
        **_figures(certain, metric),
        "bounds": {"low": _figures(chosen.low, metric), "high": _figures(chosen.high, metric)},
        "policies": {str(policy): _policy(found, metric) for policy, found in by_policy.items()},
        "skipped": dict(Counter(str(step["unplayed"]) for step in steps if step["unplayed"])),
        **_official(steps, metric, compat_trailing=compat_trailing, certain=certain is not None),
        "websites": _groups(certain.websites, metric) if certain else None,
        "domains": _groups(certain.domains, metric) if certain else None,
        "intervals_95": _intervals(scores, metric, seed) if certain and scores else None,
        "candidates": _candidates(steps, top_k),
    }


def _scores(steps: Sequence[Scored], metric: Metric, policy: NoPositive) -> list[StepScore]:
    return [
        _score(step, metric) for step in steps if policy is NoPositive.ZERO or step["unplayed"] not in WITHOUT_POSITIVE
    ]


def _score(step: Scored, metric: Metric) -> StepScore:
    judged = bool(step["judged"])
    element = float(step["element"]) if judged else 0.0
    operation = float(step["op_f1" if metric is Metric.MINDACT else "action"]) if judged else 0.0
    return StepScore(
        task_id=step["task_id"],
        website=step["website"],
        domain=step["domain"],
        element=element,
        operation=operation,
        success=element == 1.0 and operation == 1.0,
        played=step["unplayed"] not in WITHOUT_POSITIVE,
        judged=judged,
    )


def _figures(score: SuiteScore | None, metric: Metric) -> dict[str, Any]:
    return {
        "micro": _rates(None if score is None else score.micro, metric),
        "macro": _rates(None if score is None else score.macro, metric),
        "task_success": None if score is None else score.task_success,
    }


def _rates(rates: Rates | None, metric: Metric) -> dict[str, float | None]:
    second = "operation_f1" if metric is Metric.MINDACT else "action_accuracy"
    names = {"element_accuracy": "element", second: "operation", "step_success": "step"}
    return {name: None if rates is None else getattr(rates, field) for name, field in names.items()}


def _policy(found: ScoreBounds, metric: Metric) -> dict[str, Any]:
    counts = {"steps": found.low.steps, "tasks": found.low.tasks}
    if found.certain:
        return {**_figures(found.certain, metric), **counts}
    ends = {"low": _figures(found.low, metric), "high": _figures(found.high, metric)}
    return {**_figures(None, metric), "bounds": ends, **counts}


def _official(steps: Sequence[Scored], metric: Metric, *, compat_trailing: bool, certain: bool) -> dict[str, Any]:
    """Return the published keys, but only for the published metric and if every step was judged."""
    if metric is not Metric.MINDACT or not certain or not steps:
        return {}
    return official_results(_scores(steps, metric, NoPositive.ZERO), compat_trailing=compat_trailing)


def _groups(groups: Mapping[str, GroupScore], metric: Metric) -> dict[str, Any]:
    return {
        name: {
            "micro": _rates(group.micro, metric),
            "macro": _rates(group.macro, metric),
            "task_success": group.task_success,
            "steps": group.steps,
            "tasks": group.tasks,
        }
        for name, group in groups.items()
    }


def _intervals(scores: Sequence[StepScore], metric: Metric, seed: int) -> dict[str, Any]:
    """Return 95 % intervals: cluster bootstrap by task for means, Wilson for task success."""
    drawn = task_bootstrap_intervals(scores, seed=seed) or {}
    second = "operation_f1" if metric is Metric.MINDACT else "action_accuracy"
    names = {"element_accuracy": "element", second: "operation", "step_success": "step"}
    means = {mean: {name: ends[field] for name, field in names.items()} for mean, ends in drawn.items()}
    return {
        "method": "cluster bootstrap by task; Wilson for task_success",
        "seed": seed,
        **means,
        "task_success": task_success_interval(scores),
    }


def _candidates(steps: Sequence[Scored], top_k: int) -> dict[str, Any]:
    """Return the ranking quality over all steps with known ranks."""
    metrics, within, known = RankingMetrics(), 0, 0
    for step in steps:
        ranks = step["positive_ranks"]
        if ranks is None:
            continue
        known += 1
        metrics.add(ranks)
        within += min(ranks, default=top_k) < top_k
    return {**metrics.report(), "recall_cap": within / known if known else None, "top_k": top_k, "steps": known}
