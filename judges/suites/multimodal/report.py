"""Report of a Multimodal-Mind2Web~ run, in every reading that the published description leaves open. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from judges.suites.multimodal.readings import Reading
from judges.suites.step_metrics import (
    INTERVAL_METHOD,
    PublishedRow,
    StepScore,
    SuiteScore,
    bounds,
    task_bootstrap_intervals,
    task_success_interval,
)

Scored = Mapping[str, Any]
"""Record of a step: ``task_id``, ``website``, ``domain``, ``status`` (scored or not_judged) and, if scored,
``element_acc`` and ``f1`` by reading.
"""

_CARD: Final = (
    ("claude-3-5-sonnet-20240620", (50.05, 81.04, 38.47, 3.52)),
    ("gemini-1.5-flash-001", (38.61, 77.64, 32.03, 3.00)),
    ("claude-3-opus-20240229", (37.20, 80.48, 30.48, 1.41)),
    ("claude-3-sonnet-20240229", (35.28, 72.41, 27.70, 2.82)),
    ("gpt-4o", (36.02, 62.39, 27.02, 2.11)),
    ("gemini-1.5-pro-001", (34.53, 71.51, 21.91, 0.0)),
    ("claude-3-haiku-20240307", (25.77, 78.35, 20.68, 0.0)),
)
PUBLISHED: Final = tuple(
    PublishedRow(system=system, setting="", element=element, operation=operation, step=step, task_success=task)
    for system, (element, operation, step, task) in _CARD
)
"""Leaderboard of the dataset card. It does not say whether the means are micro or macro, or over which split; the task
rates are most likely those of test_website.
"""


def report(steps: Sequence[Scored], *, reading: Reading, seed: int) -> dict[str, Any]:
    """Return the figures of all steps that count. Each step that was not judged widens the bounds of every figure.

    A figure is None if any step was not judged; ``bounds`` then contains its lowest and highest value.
    """
    scores = [_score(step, reading) for step in steps]
    bounded = bounds(scores)
    certain = bounded.certain
    judged = [score for score in scores if score.judged]
    return {
        **(_flat(certain) if certain else dict.fromkeys(_flat(bounded.low))),
        "bounds": {"low": _flat(bounded.low), "high": _flat(bounded.high)},
        "readings": {str(each): _of_reading(steps, each) for each in Reading},
        "error_ratio": dict(certain.error_ratio) if certain else None,
        "websites": _groups(certain, "websites"),
        "domains": _groups(certain, "domains"),
        "intervals_95": _intervals(judged, seed) if certain and judged else None,
    }


def _score(step: Scored, reading: Reading) -> StepScore:
    judged = step["status"] == "scored"
    operation = float(step["f1"][reading]) if judged else 0.0
    element = float(step["element_acc"]) if judged else 0.0
    return StepScore(
        task_id=step["task_id"],
        website=step["website"],
        domain=step["domain"],
        element=element,
        operation=operation,
        success=element == 1.0 and operation == 1.0,
        judged=judged,
    )


def _flat(score: SuiteScore) -> dict[str, float]:
    return {
        "element_accuracy_micro": score.micro.element,
        "operation_token_f1_micro": score.micro.operation,
        "step_success_micro": score.micro.step,
        "element_accuracy_macro": score.macro.element,
        "operation_token_f1_macro": score.macro.operation,
        "step_success_macro": score.macro.step,
        "task_success": score.task_success,
    }


def _of_reading(steps: Sequence[Scored], reading: Reading) -> dict[str, Any]:
    bounded = bounds([_score(step, reading) for step in steps])
    if bounded.certain:
        return dict(_flat(bounded.certain))
    return {"bounds": {"low": _flat(bounded.low), "high": _flat(bounded.high)}}


def _groups(score: SuiteScore | None, kind: str) -> dict[str, Any] | None:
    if score is None:
        return None
    return {name: dataclasses.asdict(group) for name, group in getattr(score, kind).items()}


def _intervals(scores: Sequence[StepScore], seed: int) -> dict[str, Any]:
    """Return 95 % intervals: cluster bootstrap by task for means, Wilson for task success."""
    return {
        "method": INTERVAL_METHOD,
        "seed": seed,
        **(task_bootstrap_intervals(scores, seed=seed) or {}),
        "task_success": task_success_interval(scores),
    }
