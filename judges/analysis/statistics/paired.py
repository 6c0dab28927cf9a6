"""Two sides judged on the same tasks, from one difference for each task. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from judges.analysis.statistics import bootstrap, student
from judges.analysis.statistics.detectable import paired_detectable
from judges.analysis.statistics.interval import Interval
from judges.analysis.statistics.sign_flip import SignFlip, sign_flip


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """What ``n`` differences say of their mean. Differences of scores lie in -1..1, and so do the intervals.

    ``spread`` is their standard deviation, None for one. ``detectable``: the smallest mean difference that so many
    tasks with that spread would show in four of five experiments.
    """

    n: int
    difference: float
    spread: float | None
    student: Interval | None
    bootstrap: Interval | None
    sign_flip: SignFlip
    detectable: float | None


def paired(differences: Sequence[float]) -> Paired | None:
    """Everything about the mean of paired differences; None without a pair."""
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


FEWEST_FOR_T = 30
"""With fewer tasks the t interval of skewed differences can cover less than 93 % of the time (docs/statistics.md)."""


def between_worlds(lows: Sequence[float], highs: Sequence[float]) -> Interval | None:
    """The t interval that holds those of the two furthest worlds; None unless both have one.

    ``lows`` and ``highs`` are the least and the greatest difference each task can still have.
    """
    first, second = student.mean_interval(lows), student.mean_interval(highs)
    return None if first is None or second is None else _within(first.hull(second))


def _within(found: Interval | None) -> Interval | None:
    return None if found is None else found.cut(-1.0, 1.0)
