"""Report of a Mind2Web run: figures, their bounds and 95 % intervals, ranking quality.

Figures appear under official and descriptive names, and for both policies for steps without a positive. A figure is
None if any step was not judged; ``bounds`` then contains its lowest and highest value.

The keys are the published ones, including the spelling ``marco_``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from judges.suites.errors import SuiteError
from judges.suites.mind2web.ranks import RankingMetrics
from judges.suites.rules import DROPPABLE, Metric, NoPositive
from judges.suites.step_metrics import (
    GroupScore,
    Rates,
    ScoreBounds,
    StepScore,
    bounds,
    by_task,
    error_ratio,
    grouped,
    intervals_95,
    macro,
    mean,
    micro,
    published_row,
)

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
    official: bool = True,
) -> dict[str, Any]:
    """Return the figures of all steps, in the order of the data. ``official``: with the published keys."""
    by_policy = {policy: bounds(_scores(steps, metric, policy)) for policy in NoPositive}
    chosen, scores = by_policy[no_positive], _scores(steps, metric, no_positive)
    certain = chosen.certain
    unplayed = Counter(str(step["unplayed"]) for step in steps if step["unplayed"])
    return {
        **_figures(certain, metric),
        "bounds": _ends(chosen, metric),
        "policies": {str(policy): _policy(score_bounds, metric) for policy, score_bounds in by_policy.items()},
        "n_loaded": len(steps),
        "n_evaluated": chosen.low.steps,
        "dropped": {str(reason): unplayed[reason] * (no_positive is NoPositive.SKIP) for reason in DROPPABLE},
        "skipped": dict(unplayed),
        **(_official(steps, metric, compat_trailing=compat_trailing) if official and certain is not None else {}),
        "websites": _groups(certain.websites, metric) if certain else None,
        "domains": _groups(certain.domains, metric) if certain else None,
        "intervals_95": _intervals(scores, metric, seed) if certain and scores else None,
        "candidates": _candidates(steps, top_k),
    }


def _scores(steps: Sequence[Scored], metric: Metric, policy: NoPositive) -> list[StepScore]:
    return [_score(step, metric) for step in steps if policy is NoPositive.ZERO or step["unplayed"] not in DROPPABLE]


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
        played=step["unplayed"] not in DROPPABLE,
        judged=judged,
    )


def _figures(score: GroupScore | None, metric: Metric) -> dict[str, Any]:
    micro, macro, success = (None, None, None) if score is None else (score.micro, score.macro, score.task_success)
    return {"micro": _rates(micro, metric), "macro": _rates(macro, metric), "task_success": success}


def _rates(rates: Rates | None, metric: Metric) -> dict[str, float | None]:
    return {name: None if rates is None else getattr(rates, field) for name, field in _names(metric).items()}


def _names(metric: Metric) -> dict[str, str]:
    """Return the measures by their names in the figures."""
    second = "operation_f1" if metric is Metric.MINDACT else "action_accuracy"
    return {"element_accuracy": "element", second: "operation", "step_success": "step"}


def _ends(bounds: ScoreBounds, metric: Metric) -> dict[str, Any]:
    return {"low": _figures(bounds.low, metric), "high": _figures(bounds.high, metric)}


def _policy(bounds: ScoreBounds, metric: Metric) -> dict[str, Any]:
    ends = {} if bounds.certain else {"bounds": _ends(bounds, metric)}
    return {**_figures(bounds.certain, metric), **ends, "steps": bounds.low.steps, "tasks": bounds.low.tasks}


def _official(steps: Sequence[Scored], metric: Metric, *, compat_trailing: bool) -> dict[str, Any]:
    """Return the published keys, but only for the published metric."""
    if metric is not Metric.MINDACT or not steps:
        return {}
    return official_results(_scores(steps, metric, NoPositive.ZERO), compat_trailing=compat_trailing)


def _groups(groups: Mapping[str, GroupScore], metric: Metric) -> dict[str, Any]:
    return {
        name: {
            **_figures(group, metric),
            "steps": group.steps,
            "tasks": group.tasks,
        }
        for name, group in groups.items()
    }


def _intervals(scores: Sequence[StepScore], metric: Metric, seed: int) -> dict[str, Any]:
    intervals = intervals_95(scores, seed=seed)
    means = {
        mean: {name: intervals[mean][measure] for name, measure in _names(metric).items()}
        for mean in ("micro", "macro")
    }
    return intervals | means


def _candidates(steps: Sequence[Scored], top_k: int) -> dict[str, Any]:
    """Return the ranking quality over all steps with known ranks."""
    metrics, in_top, known = RankingMetrics(), 0, 0
    for step in steps:
        ranks = step["positive_ranks"]
        if ranks is None:
            continue
        known += 1
        metrics.add(ranks)
        in_top += min(ranks, default=top_k) < top_k
    return {**metrics.report(), "recall_cap": in_top / known if known else None, "top_k": top_k, "steps": known}


def guide_figures(steps: Sequence[Scored], no_positive: NoPositive) -> dict[str, Any]:
    """Return the figures of the guide's protocol with its names; None if any step was not judged."""
    bounded = bounds(_scores(steps, Metric.ACTION, no_positive))
    certain, counted = bounded.certain, bounded.low
    rates = {
        f"{measure}_{mean}": None if certain is None else getattr(getattr(certain, mean), field)
        for mean in ("micro", "macro")
        for measure, field in (("element", "element"), ("action", "operation"), ("step", "step"))
    }
    return {
        "metrics": {**rates, "task_success": None if certain is None else certain.task_success},
        "totals": {
            "evaluated_steps": counted.steps,
            "skipped_steps": len(steps) - counted.steps,
            "total_samples": len(steps),
            "unique_tasks": counted.tasks,
        },
    }


OFFICIAL_KEYS = (
    "element_acc",
    "action_f1",
    "step_acc",
    "marco_element_acc",
    "marco_action_f1",
    "marco_step_acc",
    "error_ratio",
    "acc_per_website",
)


def official_results(steps: Sequence[StepScore], *, compat_trailing: bool = False) -> dict[str, Any]:
    """Return the figures of steps that are all judged, in the order of the data.

    ``compat_trailing``: exclude trailing steps without a positive from means over tasks. The published loop has this
    effect, because it updates these means only after a step that was played.

    Raises:
        SuiteError: ``compat_trailing`` is set and no step was played.
    """
    counted = _until_last_played(steps) if compat_trailing else steps
    tasks = by_task(counted).values()
    over_steps, over_tasks = micro(steps), macro(tasks)
    return {
        "element_acc": over_steps.element,
        "action_f1": over_steps.operation,
        "step_acc": over_steps.step,
        "marco_element_acc": over_tasks.element,
        "marco_action_f1": over_tasks.operation,
        "marco_step_acc": over_tasks.step,
        "error_ratio": error_ratio(tasks),
        "acc_per_website": _acc_per_website(counted),
    }


def _until_last_played(steps: Sequence[StepScore]) -> Sequence[StepScore]:
    last = max((place for place, step in enumerate(steps) if step.played), default=None)
    if last is None:
        raise SuiteError("no step has a positive candidate within top-k: the published evaluation crashes on this")
    return steps[: last + 1]


def _acc_per_website(steps: Sequence[StepScore]) -> dict[str, list[float | int]]:
    """Return the mean step accuracy over the tasks of each website, and the number of tasks."""
    sites: dict[str, list[float | int]] = {}
    for name, members in grouped(steps, lambda step: step.website).items():
        tasks = [micro(task).step for task in by_task(members).values()]
        sites[name] = [mean(tasks), len(tasks)]
    return sites


SPLITS: Final = ("test_task", "test_website", "test_domain")


_TOP_50 = "top 50"
_FEW = "top 10, 50 tasks"
_PAPER: Final = (
    ("DeBERTa-B classification", "", ((26.8,), (21.6,), (24.5,))),
    ("Flan-T5-B generation", "", ((20.2, 52.0, 17.5, 0.0), (13.9, 44.7, 11.0, 0.0), (14.2, 44.7, 11.9, 0.4))),
    ("MindAct Flan-T5-B", _TOP_50, ((43.6, 76.8, 41.0, 4.0), (32.1, 67.6, 29.5, 1.7), (33.9, 67.3, 31.6, 1.6))),
    ("MindAct Flan-T5-L", _TOP_50, ((53.4, 75.7, 50.3, 7.1), (39.2, 67.1, 35.3, 1.1), (39.7, 67.2, 37.3, 2.7))),
    ("MindAct Flan-T5-XL", _TOP_50, ((55.1, 75.7, 52.0, 5.2), (42.0, 65.2, 38.9, 5.1), (42.1, 66.5, 39.6, 2.9))),
    ("GPT-3.5, 3 examples", _TOP_50, ((20.3, 56.6, 17.4, 0.8), (19.3, 48.8, 16.2, 0.6), (21.6, 52.8, 18.6, 1.0))),
    ("GPT-4, 3 examples", _FEW, ((41.6, 60.6, 36.2, 2.0), (35.8, 51.1, 30.1, 2.0), (37.1, 46.5, 26.4, 2.0))),
)
RANKER_RECALL_AT_50: Final = {"test_task": 88.9, "test_website": 85.3, "test_domain": 85.7}


def published(split: str) -> list[dict[str, Any]]:
    """Return the rows of the paper's Table 2 for a split, or an empty list for an unknown split."""
    if split not in SPLITS:
        return []
    place = SPLITS.index(split)
    return [published_row(system, setting, *figures[place]) for system, setting, figures in _PAPER]
