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


def quantile(freedom: float) -> float:
    """Return the two-sided quantile of Student's t distribution at ``LEVEL``.

    >>> round(quantile(10), 3)
    2.228
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


POWER = 0.8
"""Customary power (J. Cohen, 1988): probability that the test finds a difference of the given size."""


def paired_detectable(spread: float, tasks: int) -> float | None:
    """Return the smallest mean difference that the two-sided paired t test finds with ``POWER``.

    ``spread`` is the standard deviation of the differences. None for fewer than two tasks.
    J. Cohen, "Statistical Power Analysis for the Behavioral Sciences" (1988).
    """
    return None if tasks < 2 else _shift(tasks - 1) * spread / math.sqrt(tasks)


def unpaired_detectable(spread: float, tasks: int) -> float | None:
    """Return the smallest difference of two means over ``tasks`` tasks each that the two-sample test finds.

    ``spread`` is the standard deviation on each side. None for fewer than two tasks.
    """
    return None if tasks < 2 else _shift(2 * tasks - 2) * spread * math.sqrt(2 / tasks)


def _shift(freedom: int) -> float:
    """Return the noncentrality with ``POWER``. The tail on the other side adds less than 2e-6 to that power."""
    from scipy.special import nctdtrinc

    return float(nctdtrinc(freedom, 1 - POWER, quantile(freedom)))
