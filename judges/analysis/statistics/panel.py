"""Statistics of a panel of raters on labelled items: effective number of votes, and gain in kappa. Pure.

Both are functions of means over the items. Their intervals use the delta method: the variance of the figure is that of
its influence function, divided by the number of items. The items are assumed to be independent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Final

from judges.analysis.statistics.agreement import (
    NOTHING_TO_COUNT,
    ONE_CATEGORY,
    Estimate,
    confusion_of,
    kappa,
)
from judges.analysis.statistics.interval import Z_95

VOTES_METHOD: Final = "Kish (1965), n / (1 + (n - 1) rho); delta method for log(votes)"
GAIN_METHOD: Final = "difference of Cohen's kappa on the same items; delta method"
NO_ERRORS: Final = "no rater errs on some items only, so their errors have no correlation"
ERRORS_CANCEL: Final = "equally many raters err on every item, so their errors cancel"
CONSTANT: Final = "the large-sample variance is 0 here and bounds nothing"
_ROUNDING: Final = 1e-12
"""A variance per item below this is a rounding error of 0."""


def effective_votes(errors: Mapping[tuple[bool, ...], int]) -> tuple[float | None, Estimate]:
    """Return the correlation of the raters' errors, and the number of independent votes that the panel is worth.

    ``errors`` counts items by which raters err on them. With n raters and correlation rho, the mean of n votes has the
    variance of n / (1 + (n - 1) rho) independent ones: L. Kish, "Survey Sampling" (1965), design effect of clusters.
    rho is pooled, the mean covariance of two raters divided by the mean variance of one. The variance of the sum of
    errors V and the sum of their variances S then give n S / V votes exactly, also if the error rates differ. It is 1
    if all raters err on the same items, n if their errors are independent, and more if they avoid each other's errors.

    >>> rho, votes = effective_votes({(True, True, True): 5, (False, False, False): 15})
    >>> rho, votes.value
    (1.0, 1.0)

    Raises:
        ValueError: there are fewer than two raters, or their number differs between items.
    """
    sizes = {len(each) for each in errors}
    if len(sizes) > 1 or min(sizes, default=2) < 2:
        raise ValueError(f"a panel has at least two raters on every item, not {sorted(sizes)}")
    n = sum(errors.values())
    if n == 0:
        return None, _without_value(VOTES_METHOD, NOTHING_TO_COUNT, 0)
    raters = sizes.pop()
    rates = [sum(count for each, count in errors.items() if each[i]) / n for i in range(raters)]
    together = math.fsum(rates)
    single = math.fsum(rate * (1 - rate) for rate in rates)
    joint = math.fsum(count * (sum(each) - together) ** 2 for each, count in errors.items()) / n
    if single < _ROUNDING:
        return None, _without_value(VOTES_METHOD, NO_ERRORS, n)
    rho = (joint / single - 1) / (raters - 1)
    if joint < _ROUNDING:
        return rho, _without_value(VOTES_METHOD, ERRORS_CANCEL, n)

    def influence(each: tuple[bool, ...]) -> float:
        """Return the influence of an item on log(S / V)."""
        of_single = math.fsum((1 - 2 * rate) * (err - rate) for err, rate in zip(each, rates, strict=True))
        return of_single / single - ((sum(each) - together) ** 2 - joint) / joint

    variance = math.fsum(count * influence(each) ** 2 for each, count in errors.items()) / n
    votes = raters * single / joint
    if variance < _ROUNDING:
        return rho, Estimate(value=votes, low=None, high=None, n=n, method=VOTES_METHOD, reason=CONSTANT)
    factor = math.exp(Z_95 * math.sqrt(variance / n))
    return rho, Estimate(value=votes, low=votes / factor, high=votes * factor, n=n, method=VOTES_METHOD)


def kappa_gain(counts: Mapping[tuple[bool, bool, bool], int]) -> Estimate:
    """Return how much higher kappa with the human is for the first judge than for the second, on the same items.

    ``counts`` counts items by the verdicts of the first judge, the second judge and the human. The interval does not
    include that the second judge may have been selected because its kappa on these items is high.
    """
    n = sum(counts.values())
    if n == 0:
        return _without_value(GAIN_METHOD, NOTHING_TO_COUNT, 0)
    tables: list[Counter[tuple[bool, bool]]] = [Counter(), Counter()]
    for (first, second, human), count in counts.items():
        tables[0][first, human] += count
        tables[1][second, human] += count
    one, other = (kappa(confusion_of(table).table).value for table in tables)
    if one is None or other is None:
        return _without_value(GAIN_METHOD, ONE_CATEGORY, n)
    influence = [_kappa_influence(table) for table in tables]
    variance = (
        math.fsum(
            count * (influence[0][first, human] - influence[1][second, human]) ** 2
            for (first, second, human), count in counts.items()
        )
        / n
    )
    if variance < _ROUNDING:
        return Estimate(value=one - other, low=None, high=None, n=n, method=GAIN_METHOD, reason=CONSTANT)
    half = Z_95 * math.sqrt(variance / n)
    return Estimate(value=one - other, low=one - other - half, high=one - other + half, n=n, method=GAIN_METHOD)


def _kappa_influence(table: Counter[tuple[bool, bool]]) -> dict[tuple[bool, bool], float]:
    """Return the influence of an item on kappa, by the verdicts of judge and human."""
    n = table.total()
    judge, human = table[True, True] + table[True, False], table[True, True] + table[False, True]
    p, q = judge / n, human / n
    observed = (table[True, True] + table[False, False]) / n
    chance = p * q + (1 - p) * (1 - q)

    def influence(a: bool, b: bool) -> float:
        of_chance = (a - p) * (2 * q - 1) + (b - q) * (2 * p - 1)
        return ((a == b) - observed) / (1 - chance) - (1 - observed) * of_chance / (1 - chance) ** 2

    return {(a, b): influence(a, b) for a in (True, False) for b in (True, False)}


def _without_value(method: str, reason: str, n: int) -> Estimate:
    return Estimate(value=None, low=None, high=None, n=n, method=method, reason=reason)
