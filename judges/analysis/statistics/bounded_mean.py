"""Confidence interval for the mean of independent values that lie between two known limits.

Scores of tasks are bounded, often skewed (most tasks strong, a few at 0 because a critical leaf failed) and few.
Student's t interval and the bootstrap are too narrow for such data. This interval is not.

Its lower end is the 2.5 % quantile of ``sum(D_i * x_i)``, where the weights ``D`` have a flat Dirichlet distribution
over the values and one more value at the lower limit of the range. The upper end mirrors it. For values that are all 0
or 1 this is the Clopper-Pearson interval; for many values it approaches the normal interval.

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

from judges.analysis.statistics.interval import LEVEL, Interval

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats

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
    import numpy as np

    inside = np.clip(np.asarray(values, dtype=float), 0.0, 1.0)
    shares = _shares(n, weights)
    low, high = _lower_end(inside, shares), 1 - _lower_end(1 - inside, shares)
    return Interval(low=low, high=high, method=f"{METHOD} over {n} tasks")


def _shares(n: int, weights: Sequence[float] | None) -> Floats:
    """Return weights that add up to the effective number of values."""
    import numpy as np

    shares = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    scaled: Floats = shares * (shares.sum() / (shares @ shares))
    return scaled


def _with_end(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values in ascending order, with an additional one at 0, and the weight of each."""
    import numpy as np

    points, indices = np.unique(np.append(values, 0.0), return_inverse=True)
    return points, np.bincount(indices, weights=np.append(weights, 1.0)).astype(float)


def _lower_end(values: Floats, weights: Floats) -> float:
    """Return the lower end of the interval for values in 0..1."""
    from scipy.special import betaincinv, ndtri

    points, counts = _with_end(values, weights)
    top = float(points[-1])
    if top <= 0:
        return 0.0
    if len(points) == 2:
        return top * float(betaincinv(counts[1], counts[0], _TAIL))
    from scipy.optimize import brentq  # takes half a second to import

    points = points / top
    total = float(counts.sum())
    mean = float((counts * points).sum()) / total
    deviation = math.sqrt(float((counts * (points - mean) ** 2).sum()) / (total * (total + 1)))
    quantile = float(ndtri(_TAIL))

    def excess(at: float) -> float:
        """Return the normal quantile of the tail probability, minus that of the interval. It is 0 at the lower end.

        It is nearly linear in ``at``, so the root search needs few steps.
        """
        tail = min(1 - _MIN_TAIL, max(_MIN_TAIL, _probability_below(points, counts, at)))
        return float(ndtri(tail)) - quantile

    # Lower bound of the quantile by Cantelli's inequality.
    start = max(0.0, mean - deviation * math.sqrt(1 / _TAIL - 1))
    end = mean if excess(mean) > 0 else 1.0
    return top * float(brentq(excess, start, end, xtol=_TOLERANCE))


def _probability_below(points: Floats, weights: Floats, at: float) -> float:
    """Return the probability that the mean of ``points`` with Dirichlet(``weights``) weights is at most ``at``.

    It equals the probability that a sum of gamma variables times ``points - at`` is at most 0, integrated from the
    sum's moment generating function along a line through the saddle point (S. O. Rice, "Distribution of quadratic forms
    in normal random variables: evaluation by numerical integration", SIAM J. Sci. Stat. Comput. 1, 1980).
    """
    import numpy as np

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
