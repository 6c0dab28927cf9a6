"""Agreement of two raters: raw agreement, Cohen's kappa, Gwet's AC1, true positive and true negative rate. Pure.

Each figure has a 95 % interval, or None and the reason why the figure or the interval cannot be computed. No function
returns NaN. Rows of a table are the judge's categories, columns are the human's.

All three figures are reported because each can mislead. Raw agreement is too high if one category is rare. Kappa
corrects for agreement by chance, but drops towards 0 if one category is very rare although the raters agree (the
paradox of Feinstein and Cicchetti, 1990). AC1 is stable in that case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from judges.analysis.statistics.intervals import Z_95, wilson

Table: TypeAlias = Sequence[Sequence[int]]
"""Square table: ``table[i][j]`` counts items that the first rater put into category i and the second into j."""

_ROUNDING = 1e-12
"""A variance per item below this is a rounding error of 0."""

KAPPA_METHOD = "Fleiss, Cohen and Everitt (1969), large sample"
AC1_METHOD = "Gwet (2008), large sample"
SHARE_METHOD = "Wilson (1927)"

NOTHING_TO_COUNT = "no item to count"
NO_VARIANCE = "the large-sample variance is 0 here (the raters always agree, or one never varies) and bounds nothing"
ONE_CATEGORY = "both raters used one and the same category only, so all agreement may be chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Figure with its 95 % interval, limited to the possible range of the figure.

    ``value`` is None if the figure cannot be computed, and ``low`` and ``high`` are None if the interval cannot be
    computed. ``reason`` explains both cases. ``n`` is the number of items.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """Confusion matrix of a judge's verdicts and a human's. Positive means that the claim is supported (passed)."""

    true_positive: int = 0
    false_positive: int = 0
    false_negative: int = 0
    true_negative: int = 0

    def __post_init__(self) -> None:
        if min(self.true_positive, self.false_positive, self.false_negative, self.true_negative) < 0:
            raise ValueError("a count cannot be negative")

    @property
    def n(self) -> int:
        return self.true_positive + self.false_positive + self.false_negative + self.true_negative

    @property
    def table(self) -> Table:
        """Return the table with the judge's verdict by row and the human's by column, passed first."""
        return ((self.true_positive, self.false_positive), (self.false_negative, self.true_negative))


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of a judge with humans.

    ``tpr`` is the share of the items passed by humans that the judge passed; ``tnr`` is the same for failed items.
    """

    confusion: Confusion
    raw: Estimate
    kappa: Estimate
    ac1: Estimate
    tpr: Estimate
    tnr: Estimate


def confusion_of(pairs: Iterable[tuple[bool, bool]]) -> Confusion:
    """Count ``(judge, human)`` verdicts, True meaning passed. A ``Counter`` of pairs is counted as it is.

    >>> confusion_of([(True, True), (True, False), (False, False)])
    Confusion(true_positive=1, false_positive=1, false_negative=0, true_negative=1)
    """
    counts = Counter(pairs)
    return Confusion(
        true_positive=counts[True, True],
        false_positive=counts[True, False],
        false_negative=counts[False, True],
        true_negative=counts[False, False],
    )


def agreement(confusion: Confusion) -> Agreement:
    """Return all figures of a judge compared with humans."""
    positives = confusion.true_positive + confusion.false_negative
    negatives = confusion.true_negative + confusion.false_positive
    return Agreement(
        confusion=confusion,
        raw=share_estimate(confusion.true_positive + confusion.true_negative, confusion.n, none=NOTHING_TO_COUNT),
        kappa=kappa(confusion.table),
        ac1=ac1(confusion.table),
        tpr=share_estimate(confusion.true_positive, positives, none="humans passed no item"),
        tnr=share_estimate(confusion.true_negative, negatives, none="humans failed no item"),
    )


def share_estimate(successes: int, trials: int, *, none: str) -> Estimate:
    """Return a share with Wilson's score interval. ``none`` is the reason to report if there is no trial.

    >>> found = share_estimate(5, 10, none="no trial")
    >>> found.value, round(found.low or 0, 4), round(found.high or 0, 4)
    (0.5, 0.2366, 0.7634)
    """
    interval = wilson(successes, trials)
    if interval is None:
        return Estimate(value=None, low=None, high=None, n=0, method=SHARE_METHOD, reason=none)
    return Estimate(value=successes / trials, low=interval.low, high=interval.high, n=trials, method=SHARE_METHOD)


def kappa(table: Table) -> Estimate:
    """Return Cohen's kappa of a square table, with the large-sample variance for kappa != 0.

    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960);
    J. L. Fleiss, J. Cohen, B. S. Everitt, "Large sample standard errors of kappa and weighted kappa", Psychological
    Bulletin 72 (1969), formula 13.
    """
    n = _count(table)
    if n == 0:
        return Estimate(value=None, low=None, high=None, n=0, method=KAPPA_METHOD, reason=NOTHING_TO_COUNT)
    size = range(len(table))
    p = [[table[i][j] / n for j in size] for i in size]
    rows = [sum(p[i]) for i in size]
    columns = [sum(p[i][j] for i in size) for j in size]
    if any(sum(table[i]) == n == sum(table[k][i] for k in size) for i in size):
        return Estimate(value=None, low=None, high=None, n=n, method=KAPPA_METHOD, reason=ONE_CATEGORY)
    observed = math.fsum(p[i][i] for i in size)
    chance = math.fsum(rows[i] * columns[i] for i in size)
    value = (observed - chance) / (1 - chance)
    agreed = math.fsum(p[i][i] * ((1 - chance) - (rows[i] + columns[i]) * (1 - observed)) ** 2 for i in size)
    disagreed = math.fsum(p[i][j] * (columns[i] + rows[j]) ** 2 for i in size for j in size if i != j)
    centre = (observed * chance - 2 * chance + observed) ** 2
    variance = (agreed + (1 - observed) ** 2 * disagreed - centre) / (n * (1 - chance) ** 4)
    return _around(value, variance, n, KAPPA_METHOD)


def ac1(table: Table) -> Estimate:
    """Return Gwet's AC1 of a square table, with its large-sample variance (an infinite population of items).

    K. L. Gwet, "Computing inter-rater reliability and its variance in the presence of high agreement", British Journal
    of Mathematical and Statistical Psychology 61 (2008), formulas for two raters.
    """
    n = _count(table)
    if n == 0:
        return Estimate(value=None, low=None, high=None, n=0, method=AC1_METHOD, reason=NOTHING_TO_COUNT)
    size = range(len(table))
    p = [[table[i][j] / n for j in size] for i in size]
    mean = [(sum(p[k]) + sum(p[i][k] for i in size)) / 2 for k in size]
    others = len(table) - 1
    observed = math.fsum(p[k][k] for k in size)
    chance = math.fsum(mean[k] * (1 - mean[k]) for k in size) / others
    value = (observed - chance) / (1 - chance)
    single = math.fsum(p[k][k] * (1 - mean[k]) for k in size) / others - observed * chance
    double = math.fsum(p[k][m] * (1 - (mean[k] + mean[m]) / 2) ** 2 for k in size for m in size) / others**2 - chance**2
    spread = observed * (1 - observed) - 4 * (1 - value) * single + 4 * (1 - value) ** 2 * double
    return _around(value, spread / (n * (1 - chance) ** 2), n, AC1_METHOD)


def _around(value: float, variance: float, n: int, method: str) -> Estimate:
    """Return ``value`` with its normal interval, limited to [-1, 1]. No interval if the variance is 0."""
    if variance * n < _ROUNDING:
        return Estimate(value=value, low=None, high=None, n=n, method=method, reason=NO_VARIANCE)
    half = Z_95 * math.sqrt(variance)
    return Estimate(value=value, low=max(-1.0, value - half), high=min(1.0, value + half), n=n, method=method)


def _count(table: Table) -> int:
    """Return the number of items in a table.

    Raises:
        ValueError: the table is not square, has fewer than two categories, or contains a negative count.
    """
    if len(table) < 2 or any(len(row) != len(table) for row in table):
        raise ValueError("an agreement table must be square with at least two categories")
    if any(cell < 0 for row in table for cell in row):
        raise ValueError("a count cannot be negative")
    return sum(sum(row) for row in table)
