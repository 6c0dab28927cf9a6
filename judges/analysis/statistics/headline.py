"""Headline figures of one agent with confidence intervals: score, success rate, pass@k, pass^k. Pure.

Tasks are the unit because answers to one task are correlated. An answer that was not judged is neither 0 nor left out.
Its score has a lower and an upper bound; each figure is computed for both, and the interval covers both.

Scores of tasks are bounded, often skewed (most tasks strong, a few at 0 because a critical leaf failed) and few.
Student's t interval and the bootstrap are too narrow for such data. ``bounded_mean`` is not.

The lower end of its interval is the 2.5 % quantile of ``sum(D_i * x_i)``, where the weights ``D`` have a flat Dirichlet
distribution over the values and one more value at the lower limit of the range. The upper end mirrors it. For values
that are all 0 or 1 this is the Clopper-Pearson interval; for many values it approaches the normal interval.

Sources: N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable", Mathematical Methods of Statistics 14 (2005); E. Learned-Miller, P. S. Thomas, "A new confidence interval for
the mean of a bounded random variable", arXiv 1905.06208 (2019), who conjecture that it covers whatever the distribution
is. docs/statistics.md shows its coverage by simulation.

Pure and deterministic: the quantile is computed by numerical integration, not by drawing weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from judges.analysis.statistics.intervals import LEVEL, Interval
from judges.late_libraries import np, optimize, special

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from operator import mul
from statistics import fmean, stdev

from judges.analysis.statistics import bootstrap, intervals
from judges.analysis.statistics.intervals import unpaired_detectable
from rubrics.scoring import is_success

METHOD = "Gaffke"
_STEP = 0.1
_LIMIT = 12.0
"""Step and upper limit of the integration."""
_BLOCK = 32
"""Points per block. The integration ends after a block if the integrand is below ``_NEGLIGIBLE``."""
_NEGLIGIBLE = 1e-9
_TOLERANCE = 1e-6
_TAIL = (1 - LEVEL) / 2
_MIN_TAIL = 1e-15
"""Smaller tail probabilities are rounding errors of the integration."""


def bounded_mean(values: Sequence[float], *, weights: Sequence[float] | None = None) -> Interval:
    """Return the interval of the mean of ``values``, which lie within 0 to 1.

    Args:
        values: One value for each independent unit (task).
        weights: Weight of each value in the mean; None for equal weights. Unequal weights reduce the effective number
            of values: (sum of weights)^2 / sum of squares (L. Kish, "Survey Sampling", 1965, 11.7).

    Raises:
        ValueError: ``values`` is empty.

    >>> found = bounded_mean([1.0] * 5)
    >>> round(found.low, 4), found.high, found.method
    (0.4782, 1.0, 'Gaffke over 5 tasks')
    """
    n = len(values)
    if not n:
        raise ValueError("the mean needs at least one value")
    inside = np.clip(np.asarray(values, dtype=float), 0.0, 1.0)
    shares = _shares(n, weights)
    low, high = _lower_end(inside, shares), 1 - _lower_end(1 - inside, shares)
    return Interval(low=low, high=high, method=f"{METHOD} over {n} tasks")


def _shares(n: int, weights: Sequence[float] | None) -> Floats:
    """Return weights that add up to the effective number of values."""
    shares = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    scaled: Floats = shares * (shares.sum() / (shares @ shares))
    return scaled


def _with_end(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values in ascending order, with an additional one at 0, and the weight of each."""
    points, indices = np.unique(np.append(values, 0.0), return_inverse=True)
    return points, np.bincount(indices, weights=np.append(weights, 1.0)).astype(float)


def _lower_end(values: Floats, weights: Floats) -> float:
    """Return the lower end of the interval for values in 0..1."""
    points, counts = _with_end(values, weights)
    top = float(points[-1])
    if top <= 0:
        return 0.0
    if len(points) == 2:
        return top * float(special.betaincinv(counts[1], counts[0], _TAIL))
    points = points / top
    total = float(counts.sum())
    mean = float((counts * points).sum()) / total
    deviation = math.sqrt(float((counts * (points - mean) ** 2).sum()) / (total * (total + 1)))
    quantile = float(special.ndtri(_TAIL))

    def excess(at: float) -> float:
        """Return the normal quantile of the tail probability, minus that of the interval. It is 0 at the lower end.

        It is nearly linear in ``at``, so the root search needs few steps.
        """
        tail = min(1 - _MIN_TAIL, max(_MIN_TAIL, _probability_below(points, counts, at)))
        return float(special.ndtri(tail)) - quantile

    # Lower bound of the quantile by Cantelli's inequality.
    start = max(0.0, mean - deviation * math.sqrt(1 / _TAIL - 1))
    end = mean if excess(mean) > 0 else 1.0
    return top * float(optimize.brentq(excess, start, end, xtol=_TOLERANCE))


def _probability_below(points: Floats, weights: Floats, at: float) -> float:
    """Return the probability that the mean of ``points`` with Dirichlet(``weights``) weights is at most ``at``.

    It equals the probability that a sum of gamma variables times ``points - at`` is at most 0, integrated from the
    sum's moment generating function along a line through the saddle point (S. O. Rice, "Distribution of quadratic forms
    in normal random variables: evaluation by numerical integration", SIAM J. Sci. Stat. Comput. 1, 1980).
    """
    if at <= points[0] or at >= points[-1]:
        return float(at >= points[-1])
    gaps = points - at
    centre, scale = _saddle(gaps, weights)
    total = 0.0
    # Most integrands are negligible after the first block.
    for start in np.arange(0.0, _LIMIT, _BLOCK * _STEP):
        grid = start + _STEP * np.arange(_BLOCK)
        steps = scale * np.sinh(grid)
        # Logarithms of -line and of 1 - gaps * line in real arithmetic, which is several times faster than complex.
        real, imaginary = (1 - centre * gaps)[:, None], -gaps[:, None] * steps
        sizes = np.log(np.hypot(centre, steps)) + weights @ np.log(real * real + imaginary * imaginary) / 2
        angles = np.arctan(steps / centre) + weights @ np.arctan(imaginary / real)
        envelope = np.exp(-sizes) * np.cosh(grid)
        heights = envelope * np.cos(angles)
        total += float(heights.sum()) - (float(heights[0]) / 2 if start == 0 else 0.0)
        if envelope[-1] * scale < _NEGLIGIBLE:
            break
    return total * scale * _STEP / math.pi


def _saddle(gaps: Floats, weights: Floats) -> tuple[float, float]:
    """Return the saddle point between 1 / min(gaps) and 0, and the width of the peak there, by Newton's method."""
    left, right = 1 / float(gaps[0]), 0.0
    at = left / 2
    for _ in range(50):
        terms = gaps / (1 - at * gaps)
        slope = float((weights * terms).sum()) - 1 / at
        curvature = float((weights * terms * terms).sum()) + 1 / (at * at)
        left, right = (left, at) if slope > 0 else (at, right)
        step = at - slope / curvature
        step = step if left < step < right else (left + right) / 2
        at, moved = step, abs(step - at)
        if moved < 0.03 * abs(at):
            break
    return at, 1 / math.sqrt(curvature)


MIN_TASKS_FOR_INTERVAL = 5
"""With fewer tasks, the interval is valid but takes up most of the range."""
_ALL_K_UP_TO = 10
_FURTHER_K = (20, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One answer: its task, its run (identified by the answer's name), and the bounds of its score."""

    task_id: str
    run: str
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Figure in 0..1. ``value`` is None if answers that were not judged could change it.

    Quote ``interval``. ``student`` and ``bootstrap`` are for comparison with other tools and are too narrow for few
    tasks; None if they cannot be computed. ``student`` is None if the weights of the tasks differ, because it is for
    values of equal weight. ``bootstrap`` computes the figure itself from each draw.
    """

    value: float | None
    low: float
    high: float
    tasks: int
    interval: Interval
    student: Interval | None
    bootstrap: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassEstimate:
    """pass@k or pass^k over the tasks with at least ``k`` answers."""

    k: int
    value: float | None
    low: float
    high: float
    tasks: int
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """All figures. ``weights`` is the share of each task in ``score`` and ``success``.

    ``detectable`` is the smallest difference in score to another agent, judged on the same number of other tasks with
    the same spread, that a t test finds with a power of 0.8; None without a spread or if the weights of the tasks
    differ.
    """

    tasks: int
    answers: int
    score: Figure
    success: Figure
    pass_at: tuple[PassEstimate, ...]
    pass_hat: tuple[PassEstimate, ...]
    detectable: float | None
    weights: tuple[float, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings about the weights and the intervals."""
        warnings = weight_warnings(self.weights)
        if self.tasks < MIN_TASKS_FOR_INTERVAL:
            few = f"{self.tasks} task{'s' * (self.tasks != 1)}, fewer than {MIN_TASKS_FOR_INTERVAL}"
            warnings += (f"with {few}, the 95 % interval takes up most of the range from 0 to 1",)
        return warnings


def weight_warnings(weights: Sequence[float]) -> tuple[str, ...]:
    """Return a warning if tasks have different weights in a figure; ``weights`` are their shares.

    The effective number of tasks is (sum of weights)^2 / sum of squares (L. Kish, "Survey Sampling", 1965, 11.7).
    """
    if _are_equal(weights):
        return ()
    effective = 1 / math.fsum(weight * weight for weight in weights)
    return (
        f"not all tasks have the same runs, so their weights in the score differ: {100 * min(weights):.3g} % to "
        f"{100 * max(weights):.3g} %, as {effective:.3g} tasks of equal weight",
    )


def _are_equal(weights: Sequence[float]) -> bool:
    return math.isclose(min(weights), max(weights), rel_tol=1e-9)


def headline(trials: Sequence[Trial], *, resampled: bool = True) -> Headline | None:
    """Return the figures over all answers of an agent; None without any. ``resampled`` False skips the bootstrap."""
    if not trials:
        return None
    by_task = _by_task(trials)
    means = [fmean(answer.low for answer in answers) for answers in by_task]
    score = _figure(by_task, lambda score: score, resampled=resampled)
    _, weights = task_values([[one.run for one in task] for task in by_task], [[0.0] * len(task) for task in by_task])
    return Headline(
        tasks=len(by_task),
        answers=len(trials),
        score=score,
        success=_figure(by_task, _success, resampled=resampled),
        pass_at=_passing(by_task, pass_at_k),
        pass_hat=_passing(by_task, pass_hat_k),
        detectable=unpaired_detectable(stdev(means), len(means)) if score.student else None,
        weights=tuple(weights),
    )


def _by_task(trials: Sequence[Trial]) -> list[list[Trial]]:
    by_task: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda one: (one.task_id, one.run)):
        by_task.setdefault(trial.task_id, []).append(trial)
    return list(by_task.values())


def _success(score: float) -> float:
    return float(is_success(score))


def _figure(by_task: Sequence[Sequence[Trial]], worth: Callable[[float], float], *, resampled: bool) -> Figure:
    """Return the mean over runs of each run's mean over its tasks, with open answers at their lower and upper bound."""
    bounds = [
        [[worth(one.low) for one in task] for task in by_task],
        [[worth(one.high) for one in task] for task in by_task],
    ]
    runs = [[one.run for one in task] for task in by_task]
    (lows, weights), (highs, _) = (task_values(runs, scores_by_task) for scores_by_task in bounds)
    low, high = _weighted(lows, weights), _weighted(highs, weights)
    return Figure(
        value=low if bounds[0] == bounds[1] else None,
        low=low,
        high=high,
        tasks=len(by_task),
        interval=interval_between(lows, highs, weights=weights),
        student=_both([intervals.mean_interval(values) for values in (lows, highs)]) if _are_equal(weights) else None,
        bootstrap=_both(_resampled(runs, bounds)) if resampled else None,
    )


def task_values(runs: Sequence[Sequence[str]], scores: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return each task's value and weight, such that the weighted mean of the values is the public figure.

    The public figure is the mean over runs of each run's mean over its tasks. If every task has every run, a task's
    value is the mean over its answers and all weights are the same.

    Args:
        runs: For each task, the run of each of its answers.
        scores: For each task, the score of each of its answers.
    """
    sizes = Counter(name for names in runs for name in names)
    shares = [[1 / (len(sizes) * sizes[name]) for name in names] for names in runs]
    weights = [math.fsum(task) for task in shares]
    values = [_weighted(*each) for each in zip(scores, shares, strict=True)]
    return values, weights


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(map(mul, values, weights)) / math.fsum(weights)


def interval_between(
    lows: Sequence[float], highs: Sequence[float], *, weights: Sequence[float] | None = None
) -> Interval:
    """Return one interval of the mean that covers all possible scores of the open answers. Takes up to 25 ms."""
    first = bounded_mean(lows, weights=weights)
    last = first if highs == lows else bounded_mean(highs, weights=weights)
    return first.hull(last)


def _resampled(
    runs: Sequence[Sequence[str]], bounds: Sequence[Sequence[Sequence[float]]]
) -> tuple[Interval | None, Interval | None]:
    """Return the bootstrap intervals for the lower and the upper bounds, which are equal without open answers."""
    low, high = bounds
    first = _bootstrap(runs, low)
    return first, first if low == high else _bootstrap(runs, high)


def _bootstrap(runs: Sequence[Sequence[str]], values: Sequence[Sequence[float]]) -> Interval | None:
    """Return the bootstrap interval; None if there is one task only, or all answers have the same score."""
    if len(values) < 2 or len({score for task in values for score in task}) < 2:
        return None
    places = {name: nth for nth, name in enumerate(sorted({name for names in runs for name in names}))}
    sums, present = np.zeros((len(runs), len(places))), np.zeros((len(runs), len(places)))
    for nth, (names, scores) in enumerate(zip(runs, values, strict=True)):
        columns = [places[name] for name in names]
        sums[nth, columns], present[nth, columns] = scores, 1.0
    low, high = bootstrap.mean_over_runs_interval(sums, present)
    return Interval(low=low, high=high, method=bootstrap.method(len(values)))


def _passing(by_task: Sequence[Sequence[Trial]], chance: Callable[[int, int, int], float]) -> tuple[PassEstimate, ...]:
    most_trials = max(map(len, by_task))
    all_k = [k for k in range(1, most_trials + 1) if k <= _ALL_K_UP_TO or k in _FURTHER_K or k == most_trials]
    return tuple(_at(by_task, chance, k) for k in all_k)


def _at(by_task: Sequence[Sequence[Trial]], chance: Callable[[int, int, int], float], k: int) -> PassEstimate:
    enough = [task for task in by_task if len(task) >= k]
    bounds = [
        [chance(len(task), sum(is_success(one.low) for one in task), k) for task in enough],
        [chance(len(task), sum(is_success(one.high) for one in task), k) for task in enough],
    ]
    low, high = (fmean(chances) for chances in bounds)
    interval = interval_between(*bounds)
    return PassEstimate(
        k=k, value=low if low == high else None, low=low, high=high, tasks=len(enough), interval=interval
    )


def _both(bounds: Sequence[Interval | None]) -> Interval | None:
    """Return the interval that covers both, limited to 0..1; None if one is missing."""
    first, second = bounds
    return None if first is None or second is None else first.hull(second).cut(0.0, 1.0)


def pass_at_k(answers: int, successes: int, k: int) -> float:
    """Return the probability that at least one of ``k`` answers, drawn without replacement, is a success.

    The unbiased estimator of M. Chen et al., "Evaluating Large Language Models Trained on Code", arXiv 2107.03374
    (2021), equation 1: 1 - C(n - c, k) / C(n, k). The counts are exact integers, so only the result is rounded.

    >>> pass_at_k(5, 2, 2)
    0.7

    Raises:
        ValueError: ``k`` is not in 1..``answers``, or ``successes`` is not in 0..``answers``.
    """
    _check(answers, successes, k)
    all_draws = comb(answers, k)
    return (all_draws - comb(answers - successes, k)) / all_draws


def pass_hat_k(answers: int, successes: int, k: int) -> float:
    """Return the probability that all of ``k`` answers, drawn without replacement, are successes: C(c, k) / C(n, k).

    S. Yao et al., "tau-bench", arXiv 2406.12045 (2024), section 3 (there pass^k).

    >>> pass_hat_k(5, 4, 2)
    0.6

    Raises:
        ValueError: as for ``pass_at_k``.
    """
    _check(answers, successes, k)
    return comb(successes, k) / comb(answers, k)


def _check(answers: int, successes: int, k: int) -> None:
    if not 1 <= k <= answers:
        raise ValueError(f"k is {k}, but must be from 1 to the number of answers, {answers}")
    if not 0 <= successes <= answers:
        raise ValueError(f"successes is {successes}, but must be from 0 to the number of answers, {answers}")
