"""95 % confidence intervals of suite figures.

Steps of one task are not independent, so means over steps are bootstrapped by task. Needs numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from judges.analysis.statistics.bootstrap import ratio_intervals
from judges.analysis.statistics.wilson import wilson
from judges.suites.metrics import StepScore, grouped

RESAMPLES = 2000
MEANS = ("element", "operation", "step")

IntervalBounds: TypeAlias = dict[str, float]
"""Bounds of a 95 % interval: ``low`` and ``high``, both in [0, 1]."""


def task_bootstrap_intervals(
    steps: Sequence[StepScore], *, seed: int = 0, resamples: int = RESAMPLES
) -> Mapping[str, Mapping[str, IntervalBounds]] | None:
    """Return the intervals of the three means, or None if there are no steps.

    ``micro`` are means over steps, ``macro`` means over tasks.
    """
    tasks = _by_task(steps)
    if not tasks:
        return None
    import numpy as np

    sums = np.array(
        [[sum(values) for values in zip(*((s.element, s.operation, float(s.success)) for s in task), strict=True)]
         for task in tasks]
    )  # fmt: skip
    sizes = np.array([len(task) for task in tasks], dtype=float)
    # Both use the same resamples. Micro: sums divided by step counts. Macro: means of tasks divided by 1 per task.
    micro = ratio_intervals(sums, sizes, seed=seed, resamples=resamples)
    macro = ratio_intervals(sums / sizes[:, None], np.ones(len(tasks)), seed=seed, resamples=resamples)
    return {"micro": _named(micro), "macro": _named(macro)}


def task_success_interval(steps: Sequence[StepScore]) -> IntervalBounds | None:
    """Return the Wilson interval of the share of tasks in which every step succeeds, or None if there are no steps."""
    tasks = _by_task(steps)
    found = wilson(sum(all(step.success for step in task) for task in tasks), len(tasks))
    return None if found is None else {"low": found.low, "high": found.high}


def _by_task(steps: Sequence[StepScore]) -> list[Sequence[StepScore]]:
    return list(grouped(steps, lambda step: step.task_id).values())


def _named(found: Sequence[tuple[float, float]]) -> dict[str, IntervalBounds]:
    return {name: {"low": low, "high": high} for name, (low, high) in zip(MEANS, found, strict=True)}
