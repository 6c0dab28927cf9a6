"""Cluster bootstrap: draws whole tasks with replacement and computes a figure from each draw. Pure.

Answers and steps of one task are correlated, so tasks are the unit. Percentile intervals: B. Efron, "Bootstrap
methods: another look at the jackknife", Annals of Statistics 7 (1979); whole clusters: A. C. Davison, D. V. Hinkley,
"Bootstrap Methods and their Application" (1997), 3.8. The seed is fixed, so that the same data give the same interval.
numpy is imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from judges.analysis.statistics.intervals import LEVEL, Interval
from judges.late_libraries import np

if TYPE_CHECKING:
    Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

RESAMPLES = 10_000
SEED = 20_250_101
_BLOCK = 250
"""Resamples per block, which limits memory use."""


def draws(clusters: int, *, seed: int = SEED, resamples: int = RESAMPLES) -> Iterator[Floats]:
    """Yield how often each cluster occurs in each resample, in blocks of shape (up to 250, clusters)."""
    random = np.random.default_rng(seed)
    for start in range(0, resamples, _BLOCK):
        rows = min(_BLOCK, resamples - start)
        drawn = random.integers(0, clusters, size=(rows, clusters))
        drawn += np.arange(rows)[:, None] * clusters
        yield np.bincount(drawn.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(float)


def ratio_intervals(
    sums: Floats, sizes: Floats, *, seed: int = SEED, resamples: int = RESAMPLES
) -> list[tuple[float, float]]:
    """Return the percentile interval of each column: its sum over all clusters divided by the sum of their sizes.

    ``sums`` has shape (clusters, columns), ``sizes`` (clusters,), all above 0. Sizes of 1 give means over clusters.
    """
    samples = [(drawn @ sums) / (drawn @ sizes)[:, None] for drawn in draws(len(sizes), seed=seed, resamples=resamples)]
    lows, highs = np.quantile(np.concatenate(samples), _ENDS, axis=0)
    return [(float(low), float(high)) for low, high in zip(lows, highs, strict=True)]


def mean_over_runs_interval(sums: Floats, present: Floats) -> tuple[float, float]:
    """Return the percentile interval of the mean over runs of each run's mean over its tasks.

    Both arrays have shape (tasks, runs). ``sums`` contains the value of a task in a run, or 0 if there is none;
    ``present`` contains 1.0 if there is a value. A run without a task of a draw is left out of that draw.
    """
    samples = []
    for drawn in draws(len(sums)):
        counted = drawn @ present
        means = np.divide(drawn @ sums, counted, out=np.zeros_like(counted), where=counted > 0)
        samples.append(means.sum(axis=1) / (counted > 0).sum(axis=1))
    low, high = np.quantile(np.concatenate(samples), _ENDS)
    return float(low), float(high)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return the interval of the mean of one value per task; None if there are fewer than two, or all are equal."""
    if len(values) < 2 or max(values) - min(values) <= 0:
        return None
    column = np.asarray(values, dtype=float)[:, None]
    [(low, high)] = ratio_intervals(column, np.ones(len(values)))
    return Interval(low=low, high=high, method=method(len(values)))


def method(clusters: int) -> str:
    """Return the description of the method."""
    return f"bootstrap over {clusters} tasks, {RESAMPLES} resamples, seed {SEED}"


_ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
