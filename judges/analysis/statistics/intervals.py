"""Confidence intervals: Wilson's score interval for a share, and Student's t interval for a mean over tasks. Pure.

Wilson's interval stays within 0..1 and is not empty if all trials have the same outcome. numpy is not needed; scipy is
imported on first use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from judges.late_libraries import special

LEVEL = 0.95
"""Two-sided confidence level of all intervals."""
Z_95 = 1.959963984540054
"""The two-sided ``LEVEL`` quantile of the normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Confidence interval at ``LEVEL``. ``method`` describes how it was computed."""

    low: float
    high: float
    method: str

    def cut(self, least: float, most: float) -> Interval:
        """Return the interval limited to the possible range of the figure."""
        return replace(self, low=max(least, self.low), high=min(most, self.high))

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both."""
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


def wilson(successes: float, trials: float) -> Interval | None:
    """Return Wilson's interval for ``successes`` of ``trials``; None if there is no trial.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). ``trials``
    need not be an integer.

    >>> found = wilson(5, 10)
    >>> round(found.low, 4), round(found.high, 4), found.method
    (0.2366, 0.7634, 'Wilson, n = 10')
    >>> wilson(0, 0) is None
    True
    """
    if trials <= 0:
        return None
    share, square = successes / trials, Z_95 * Z_95
    middle, scale = share + square / (2 * trials), 1 + square / trials
    spread = Z_95 * math.sqrt(max(0.0, share * (1 - share)) / trials + square / (4 * trials * trials))
    # With no success, or only successes, that end is exactly 0 or 1, but the formula has a rounding error.
    low = 0.0 if successes <= 0 else max(0.0, (middle - spread) / scale)
    high = 1.0 if successes >= trials else min(1.0, (middle + spread) / scale)
    return Interval(low=low, high=high, method=f"Wilson, n = {trials:.4g}")


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
    return float(special.stdtrit(freedom, (1 + LEVEL) / 2))


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
    return float(special.nctdtrinc(freedom, 1 - POWER, quantile(freedom)))
