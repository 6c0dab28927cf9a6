"""Intervals for a bounded mean that were evaluated and not chosen, for the comparison in ``tests.bench.coverage``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from judges.analysis.statistics.intervals import wilson

LEVEL = 0.95


def wilson_effective(values: Sequence[float]) -> tuple[float, float]:
    """Wilson's interval with n = rate (1 - rate) / variance of the mean, at least the number of values."""
    mean, n = float(np.mean(values)), len(values)
    spread = float(np.var(values, ddof=1)) / n
    trials = mean * (1 - mean) / spread if spread > 1e-12 else float(n)
    found = wilson(mean * max(n, trials), max(n, trials))
    assert found is not None
    return found.low, found.high


def bca(values: Sequence[float], resamples: int = 1000) -> tuple[float, float]:
    """B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987)."""
    x, n = np.asarray(values), len(values)
    mean = float(x.mean())
    if np.ptp(x) < 1e-12:
        return mean, mean
    draws = x[np.random.default_rng(1).integers(0, n, (resamples, n))].mean(axis=1)
    below = ((draws < mean).sum() + (draws == mean).sum() / 2) / resamples
    bias = stats.norm.ppf(min(max(below, 1 / resamples), 1 - 1 / resamples))
    leave = (x.sum() - x) / (n - 1)
    apart = leave.mean() - leave
    acceleration = (apart**3).sum() / (6 * (apart**2).sum() ** 1.5)
    z = bias + stats.norm.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    low, high = np.quantile(draws, stats.norm.cdf(bias + z / (1 - acceleration * z)))
    return float(low), float(high)


def empirical_likelihood(values: Sequence[float]) -> tuple[float, float]:
    """A. B. Owen, "Empirical likelihood ratio confidence intervals for a single functional", Biometrika 75 (1988)."""
    x, n = np.asarray(values), len(values)
    mean, least, most = float(x.mean()), float(x.min()), float(x.max())
    if most - least < 1e-12:
        return mean, mean
    limit = stats.f.ppf(LEVEL, 1, n - 1)

    def excess(at: float) -> float:
        gaps = x - at
        within = 1 - 1e-12
        tilt = brentq(lambda c: (gaps / (1 + c * gaps)).sum(), -within / gaps.max(), -within / gaps.min())
        return float(2 * np.log1p(tilt * gaps).sum() - limit)

    near = (most - least) * 1e-9
    low = brentq(excess, least + near, mean) if excess(least + near) > 0 else least
    high = brentq(excess, mean, most - near) if excess(most - near) > 0 else most
    return float(low), float(high)


def hedged_capital(values: Sequence[float], grid: int = 500) -> tuple[float, float]:
    """I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024)."""
    x, n = np.asarray(values), len(values)
    counts = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(x)) / (counts + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (counts + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    bets = np.sqrt(2 * math.log(2 / (1 - LEVEL)) / (n * before))
    at = np.linspace(0, 1, grid + 1)[1:-1]
    up = np.log1p(np.minimum(bets[:, None], 0.75 / at) * (x[:, None] - at)).cumsum(axis=0).max(axis=0)
    down = np.log1p(-np.minimum(bets[:, None], 0.75 / (1 - at)) * (x[:, None] - at)).cumsum(axis=0).max(axis=0)
    kept = at[np.maximum(up, down) + math.log(0.5) < math.log(1 / (1 - LEVEL))]
    step = 1 / grid
    return (max(0.0, float(kept.min()) - step), min(1.0, float(kept.max()) + step)) if len(kept) else (0.0, 1.0)


def anderson(values: Sequence[float]) -> tuple[float, float]:
    """T. W. Anderson, "Confidence limits for the expected value of an arbitrary bounded random variable" (1969)."""
    n = len(values)
    band = math.sqrt(math.log(2 / (1 - LEVEL)) / (2 * n))

    def lower(sorted_values: np.ndarray) -> float:
        steps = np.diff(np.concatenate([[0.0], sorted_values]))
        return float((steps * np.maximum(0.0, 1 - np.arange(n) / n - band)).sum())

    x = np.sort(np.asarray(values))
    return lower(x), 1 - lower(np.sort(1 - x))


def maurer_pontil(values: Sequence[float]) -> tuple[float, float]:
    """A. Maurer, M. Pontil, "Empirical Bernstein bounds and sample variance penalization", COLT 2009."""
    n, mean = len(values), float(np.mean(values))
    part = math.log(4 / (1 - LEVEL))
    margin = math.sqrt(2 * float(np.var(values, ddof=1)) * part / n) + 7 * part / (3 * (n - 1))
    return max(0.0, mean - margin), min(1.0, mean + margin)
