"""Paired comparison of two sides on the same tasks, from one difference per task. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from judges.analysis.statistics import bootstrap, student
from judges.analysis.statistics.interval import Interval
from judges.analysis.statistics.sign_flip import SignFlip, sign_flip
from judges.analysis.statistics.student import paired_detectable


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Figures for the mean of ``n`` paired differences. Differences of scores and their intervals are in -1..1.

    ``spread`` is the standard deviation, None for one difference. ``detectable`` is the smallest mean difference that a
    paired t test over these tasks finds with a power of 0.8.
    """

    n: int
    difference: float
    spread: float | None
    student: Interval | None
    bootstrap: Interval | None
    sign_flip: SignFlip
    detectable: float | None


def paired(differences: Sequence[float]) -> Paired | None:
    """Return all figures for the mean of paired differences; None if there is no pair."""
    test = sign_flip(differences)
    if test is None:
        return None
    spread = stdev(differences) if len(differences) > 1 else None
    return Paired(
        n=len(differences),
        difference=fmean(differences),
        spread=spread,
        student=_within(student.mean_interval(differences)),
        bootstrap=_within(bootstrap.mean_interval(differences)),
        sign_flip=test,
        detectable=paired_detectable(spread, len(differences)) if spread else None,
    )


MIN_TASKS_FOR_T = 30
"""With fewer tasks, the coverage of the t interval of skewed differences can be below 93 % (docs/statistics.md)."""


def interval_over_bounds(lows: Sequence[float], highs: Sequence[float]) -> Interval | None:
    """Return the t interval that covers those of both bounds; None if one of them is missing.

    ``lows`` and ``highs`` are the lower and the upper bound of the difference of each task.
    """
    first, second = student.mean_interval(lows), student.mean_interval(highs)
    return None if first is None or second is None else _within(first.hull(second))


def _within(interval: Interval | None) -> Interval | None:
    return None if interval is None else interval.cut(-1.0, 1.0)
