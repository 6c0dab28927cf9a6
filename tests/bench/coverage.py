"""Simulated coverage of intervals for the mean score, as in docs/statistics.md.

Each run draws the scores of ``n`` tasks from a known distribution, computes every interval and checks whether it covers
the known mean. Fixed seed: the same figures in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from judges.analysis.statistics.headline import bounded_mean, task_values
from judges.analysis.statistics.intervals import mean_interval, wilson

Floats: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.float64]]"
Ends: TypeAlias = tuple[float, float]

RUNS, SEED = 2_000, 20_261_122
MAX_ANSWERS = 5
_ROUNDING = 1e-6
"""Tolerance of the ends of an interval."""
SAME_AS_FIRST = 0.7
"""Probability that another answer to a task has the score of the first one: an intraclass correlation of 0.49."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A distribution of scores with its mean."""

    description: str
    mean: float
    draw: Callable[[np.random.Generator, int], Floats]


def _mixed(share: float, a: float, b: float, *, otherwise: float = 0.0) -> Shape:
    """A beta distribution with probability ``share``, else the score ``otherwise``."""

    def draw(random: np.random.Generator, count: int) -> Floats:
        return np.where(random.random(count) < share, random.beta(a, b, count), otherwise)

    rest = f", {1 - share:.0%} {otherwise:g}" if share < 1 else ""
    mean = share * a / (a + b) + (1 - share) * otherwise
    return Shape(description=f"{share:.0%} Beta({a:g}, {b:g}){rest}", mean=mean, draw=draw)


def _full_or_zero(share: float) -> Shape:
    return Shape(
        description=f"{share:.0%} 1, {1 - share:.0%} 0",
        mean=share,
        draw=lambda random, count: (random.random(count) < share).astype(float),
    )


SHAPES: Mapping[str, Shape] = {
    "mid": _mixed(1.0, 4, 4),
    "skewed": _mixed(0.85, 18, 2),
    "weak": _mixed(0.3, 2, 6),
    "high": _mixed(0.95, 50, 1),
    "all-or-nothing 50 %": _full_or_zero(0.5),
    "all-or-nothing 80 %": _full_or_zero(0.8),
    "all-or-nothing 95 %": _full_or_zero(0.95),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One simulated experiment: the value and weight of each task, and its plain mean over answers."""

    values: Sequence[float]
    weights: Sequence[float]
    means: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalQuality:
    """Quality of a method over all runs: coverage of the mean, mean width, and share of intervals above the mean.

    ``passed_by_luck`` is that share: how often an agent just below ``--min-lower-bound`` passes.
    """

    coverage: float
    width: float
    passed_by_luck: float


def samples(shape: Shape, tasks: int, *, clustered: bool, runs: int = RUNS, seed: int = SEED) -> Iterator[Sample]:
    """Draw experiments. ``clustered``: one to five answers per task, with correlated scores."""
    random = np.random.default_rng([seed, tasks, clustered])
    for _ in range(runs):
        first = shape.draw(random, tasks)
        if not clustered:
            scores = first.tolist()
            yield Sample(values=scores, weights=[1.0] * tasks, means=scores)
            continue
        answers = random.integers(1, MAX_ANSWERS + 1, tasks)
        further = shape.draw(random, tasks * MAX_ANSWERS).reshape(tasks, MAX_ANSWERS)
        same = random.random((tasks, MAX_ANSWERS)) < SAME_AS_FIRST
        same[:, 0] = True
        drawn = [
            np.where(alike, score, others)[:count].tolist()
            for score, others, alike, count in zip(first, further, same, answers, strict=True)
        ]
        values, weights = task_values([[f"{run}" for run in range(len(scores))] for scores in drawn], drawn)
        yield Sample(values=values, weights=weights, means=[float(np.mean(scores)) for scores in drawn])


def _student(one: Sample) -> Ends:
    """Student's t interval, cut to 0..1. If all values are equal, Wilson's interval."""
    found = mean_interval(one.means) or wilson(float(np.mean(one.means)) * len(one.means), len(one.means))
    assert found is not None
    return max(0.0, found.low), min(1.0, found.high)


def _gaffke(one: Sample) -> Ends:
    found = bounded_mean(one.values, weights=one.weights)
    return found.low, found.high


DEFAULT_METHOD = "Gaffke"
METHODS: Mapping[str, Callable[[Sample], Ends]] = {
    "Student t": _student,
    DEFAULT_METHOD: _gaffke,
}


def measured(method: str, drawn: Sequence[Sample], mean: float) -> IntervalQuality:
    """Apply a method to all experiments."""
    return _found([METHODS[method](one) for one in drawn], mean)


def _found(ends: Sequence[Ends], mean: float) -> IntervalQuality:
    low, high = np.array(ends).T
    return IntervalQuality(
        coverage=float(((low <= mean + _ROUNDING) & (mean <= high + _ROUNDING)).mean()),
        width=float((high - low).mean()),
        passed_by_luck=float((low > mean + _ROUNDING).mean()),
    )
