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


POWER = 0.8
"""Customary power (J. Cohen, 1988): probability that the test finds a difference of the given size."""
_MAX_SHIFT = 6.0
"""A normal variable exceeds this with a probability of 1e-9."""


def paired_power(difference: float, spread: float, tasks: int, *, level: float = LEVEL) -> float:
    """Return the power of the two-sided paired t test. ``spread`` is the standard deviation of the differences.

    J. Cohen, "Statistical Power Analysis for the Behavioral Sciences" (1988); by the noncentral t distribution.
    """
    return _power(difference / spread * math.sqrt(tasks), tasks - 1, level)


def unpaired_power(difference: float, spread: float, tasks: int, *, level: float = LEVEL) -> float:
    """Return the power of the two-sample test with ``tasks`` tasks and the same standard deviation on each side."""
    return _power(difference / spread * math.sqrt(tasks / 2), 2 * tasks - 2, level)


def paired_detectable(spread: float, tasks: int, *, power: float = POWER, level: float = LEVEL) -> float | None:
    """Return the smallest mean difference that the paired test finds with ``power``; None for fewer than two tasks."""
    if tasks < 2:
        return None
    return _shift(tasks - 1, power, level) * spread / math.sqrt(tasks)


def unpaired_detectable(spread: float, tasks: int, *, power: float = POWER, level: float = LEVEL) -> float | None:
    """Return the smallest difference of two means over ``tasks`` tasks each that the two-sample test finds.

    None for fewer than two tasks.
    """
    if tasks < 2:
        return None
    return _shift(2 * tasks - 2, power, level) * spread * math.sqrt(2 / tasks)


def _power(shift: float, freedom: int, level: float) -> float:
    """Return the probability that a noncentral t variable is outside the quantiles of the central distribution."""
    from scipy.special import nctdtr

    edge, shift = quantile(freedom, level=level), abs(shift)
    # By symmetry, 1 - F(edge; shift) equals F(-edge; -shift), which avoids cancellation.
    near_tail = float(nctdtr(freedom, -shift, -edge))
    # The other tail is smaller than that of a normal variable beyond the shift. scipy returns NaN for large shifts.
    return near_tail if shift > _MAX_SHIFT else near_tail + float(1 - nctdtr(freedom, -shift, edge))


def _shift(freedom: int, power: float, level: float) -> float:
    """Return the noncentrality with the given power, by bisection, because the power increases with it."""
    low, high = 0.0, 1.0
    while _power(high, freedom, level) < power:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(middle, freedom, level) < power else (low, middle)
    return high
