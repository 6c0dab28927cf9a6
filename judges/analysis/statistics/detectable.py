"""How small a difference a t test over so many tasks would find. Pure; scipy is loaded when it is needed."""

from __future__ import annotations

import math

from judges.analysis.statistics.interval import LEVEL
from judges.analysis.statistics.student import quantile

POWER = 0.8
"""The chance of finding a difference of the size named: the customary one (J. Cohen, 1988)."""
_FAR = 6.0
"""A normal lies so far out once in a thousand million times."""


def paired_power(difference: float, spread: float, tasks: int, *, level: float = LEVEL) -> float:
    """The power of the two-sided paired t test: ``spread`` is the standard deviation of the differences.

    J. Cohen, "Statistical Power Analysis for the Behavioral Sciences" (1988); by the noncentral t distribution.
    """
    return _power(difference / spread * math.sqrt(tasks), tasks - 1, level)


def unpaired_power(difference: float, spread: float, tasks: int, *, level: float = LEVEL) -> float:
    """The same of the two-sample test, with ``tasks`` on each side and one standard deviation within both."""
    return _power(difference / spread * math.sqrt(tasks / 2), 2 * tasks - 2, level)


def paired_detectable(spread: float, tasks: int, *, power: float = POWER, level: float = LEVEL) -> float | None:
    """The smallest mean difference that the paired test finds with ``power``; None for fewer than two tasks."""
    if tasks < 2:
        return None
    return _shift(tasks - 1, power, level) * spread / math.sqrt(tasks)


def unpaired_detectable(spread: float, tasks: int, *, power: float = POWER, level: float = LEVEL) -> float | None:
    """The smallest difference of two means over ``tasks`` each that the two-sample test finds with ``power``."""
    if tasks < 2:
        return None
    return _shift(2 * tasks - 2, power, level) * spread * math.sqrt(2 / tasks)


def _power(shift: float, freedom: int, level: float) -> float:
    """The chance that a noncentral t lies outside of the quantiles of the central one."""
    from scipy.special import nctdtr

    edge, shift = quantile(freedom, level=level), abs(shift)
    # By its mirror image, 1 - F(edge; shift) is F(-edge; -shift), without cancellation.
    near = float(nctdtr(freedom, -shift, -edge))
    # The other tail is less than that of a normal beyond the shift; further out the library gives no number for it.
    return near if shift > _FAR else near + float(1 - nctdtr(freedom, -shift, edge))


def _shift(freedom: int, power: float, level: float) -> float:
    """The noncentrality at which the power is reached, by halving: the power grows with it."""
    low, high = 0.0, 1.0
    while _power(high, freedom, level) < power:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _power(middle, freedom, level) < power else (low, middle)
    return high
