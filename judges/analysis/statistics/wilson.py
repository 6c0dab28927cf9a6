"""Wilson's score interval for a share of independent trials. Pure, without numpy.

The interval stays within 0..1 and is not empty if all trials have the same outcome.
"""

from __future__ import annotations

import math

from judges.analysis.statistics.interval import Z_95, Interval


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
