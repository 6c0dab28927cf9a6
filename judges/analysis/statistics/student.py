"""Student's t interval for a mean over tasks. Pure; scipy is imported on first use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from judges.analysis.statistics.interval import LEVEL, Interval


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return the t interval for the mean of independent ``values``, one per task. It is not limited to a range.

    None for fewer than two values or if all are equal, because the variance cannot be estimated then.
    "Student" (W. S. Gosset), "The probable error of a mean", Biometrika 6 (1908).
    """
    if len(values) < 2 or max(values) - min(values) <= 0:
        return None
    middle = fmean(values)
    half = quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(low=middle - half, high=middle + half, method=f"Student t over {len(values)} tasks")


def quantile(freedom: float, *, level: float = LEVEL) -> float:
    """Return the two-sided quantile of Student's t distribution at ``level``.

    >>> round(quantile(10), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))
