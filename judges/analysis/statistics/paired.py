"""Paired comparison of two sides on the same tasks, from one difference per task. Pure.

The sign-flip permutation test computes how often the mean is at least as far from 0 if the two sides are swapped in any
subset of the tasks. It is exact for up to ``EXACT_UP_TO`` nonzero differences. For more, it draws random sign patterns
with a fixed seed. numpy is imported on first use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judges.analysis.statistics.bootstrap import SEED
from judges.late_libraries import np

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats
from statistics import fmean, stdev

from judges.analysis.statistics import bootstrap, intervals
from judges.analysis.statistics.intervals import Interval, paired_detectable

MIN_TASKS_FOR_TEST = 6
"""With fewer differing tasks, p cannot be below 0.05: for five the minimum is 2 of 32 sign patterns, or 0.0625."""
EXACT_UP_TO = 40
"""The 2^40 sign patterns of 40 differences are counted in under a second from two sorted halves of 2^20 sums each."""
DRAWS = 100_000
_BLOCK = 2_000
_ROUNDING = 1e-9
"""Sums that differ by less than this fraction of the largest sum are treated as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """Result of the two-sided test. ``patterns`` is the number of evaluated sign patterns: all of them if ``exact``.

    ``n`` is the number of nonzero differences. Zero differences have no sign and do not affect ``p``.
    """

    p: float
    n: int
    exact: bool
    patterns: int
    method: str

    @property
    def smallest_p(self) -> float:
        """Return the smallest possible ``p`` for ``n`` tasks, which occurs if all differences have the same sign."""
        return min(1.0, 2 / 2**self.n) if self.exact else 1 / (self.patterns + 1)


def sign_flip(differences: Sequence[float]) -> SignFlip | None:
    """Test whether paired differences are symmetric about 0 (two-sided). None if there is no pair.

    R. A. Fisher, "The Design of Experiments" (1935), section 21. For more than ``EXACT_UP_TO`` differences, the
    observed pattern is added to the drawn ones, so that ``p`` is never 0: B. Phipson, G. K. Smyth, "Permutation
    P-values should never be zero", Statistical Applications in Genetics and Molecular Biology 9 (2010).
    """
    if not differences:
        return None
    sizes = [abs(difference) for difference in differences if difference != 0]
    if not sizes:
        return SignFlip(p=1.0, n=0, exact=True, patterns=1, method="exact sign-flip: no task differs")
    observed = abs(math.fsum(differences))
    # A pattern with the same sum as the observed one must count, despite rounding that depends on the order.
    least = observed - _ROUNDING * math.fsum(sizes)
    n = len(sizes)
    if n <= EXACT_UP_TO:
        reached, patterns = _counted(sizes, least), 2**n
        return SignFlip(
            p=reached / patterns, n=n, exact=True, patterns=patterns, method=f"exact sign-flip of {n} tasks"
        )
    reached = _drawn(sizes, least)
    return SignFlip(
        p=(reached + 1) / (DRAWS + 1),
        n=n,
        exact=False,
        patterns=DRAWS,
        method=f"sign-flip of {n} tasks, {DRAWS} patterns drawn, seed {SEED}",
    )


def _counted(sizes: Sequence[float], least: float) -> int:
    """Count the sign patterns with an absolute sum of at least ``least``, from pairs of sums of two halves."""
    if least <= 0:
        return 1 << len(sizes)
    left, right = _sums(sizes[: len(sizes) // 2]), _sums(sizes[len(sizes) // 2 :])
    right.sort()
    left.sort()  # sorted queries are several times faster than unsorted ones
    below = int(np.searchsorted(right, least - left, side="left").sum())
    # Each pattern has a mirror image with the negative sum.
    return 2 * (len(left) * len(right) - below)


def _sums(sizes: Sequence[float]) -> Floats:
    """Return the sums of all sign patterns."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def _drawn(sizes: Sequence[float], least: float) -> int:
    """Count the random patterns, out of ``DRAWS``, with an absolute sum of at least ``least``."""
    random, values, reached = np.random.default_rng(SEED), np.asarray(sizes), 0
    for start in range(0, DRAWS, _BLOCK):
        signs = random.integers(0, 2, size=(min(_BLOCK, DRAWS - start), len(values)))
        reached += int((np.abs((2 * signs - 1) @ values) >= least).sum())
    return reached


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p values in the given order. All comparisons with a value below a hold jointly at level a.

    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
    The comparisons may depend on each other in any way.

    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda nth: p_values[nth])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, nth in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[nth]))
        adjusted[nth] = highest
    return adjusted


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
        student=_within(intervals.mean_interval(differences)),
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
    first, second = intervals.mean_interval(lows), intervals.mean_interval(highs)
    return None if first is None or second is None else _within(first.hull(second))


def _within(interval: Interval | None) -> Interval | None:
    return None if interval is None else interval.cut(-1.0, 1.0)
