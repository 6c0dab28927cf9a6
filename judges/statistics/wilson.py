"""Wilson's score interval: for a share of trials, and for a mean in 0..1 of tasks whose answers resemble each other.

Pure, without numpy. The interval stays within 0..1 and says something even where all trials came out alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from judges.statistics.interval import Z_95, Interval


def wilson(successes: float, trials: float, *, z: float = Z_95) -> Interval | None:
    """Wilson's interval for ``successes`` of ``trials``; None without a trial.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927). ``trials``
    need not be whole: see ``clustered_share``.

    >>> found = wilson(5, 10)
    >>> round(found.low, 4), round(found.high, 4), found.method
    (0.2366, 0.7634, 'Wilson, n = 10')
    >>> wilson(0, 0) is None
    True
    """
    if trials <= 0:
        return None
    share, square = successes / trials, z * z
    middle, scale = share + square / (2 * trials), 1 + square / trials
    spread = z * math.sqrt(max(0.0, share * (1 - share)) / trials + square / (4 * trials * trials))
    # With no success, or nothing else, that end is exactly 0, or 1; the formula leaves some rounding there.
    low = 0.0 if successes <= 0 else max(0.0, (middle - spread) / scale)
    high = 1.0 if successes >= trials else min(1.0, (middle + spread) / scale)
    return Interval(low=low, high=high, method=f"Wilson, n = {trials:.4g}")


def clustered_share(task_means: Sequence[float], *, answers: int) -> Interval | None:
    """Wilson's interval for the mean of one value in 0..1 for each task; None without a task.

    ``n`` is the effective number of trials, rate (1 - rate) over the variance of the mean between tasks: with one
    answer a task exactly the number of tasks, with several at least that and at most ``answers``. Answers to one task
    that agree count once, answers that differ count more. L. Kish, "Survey Sampling" (1965), 8.2; as recommended by
    N. Dean, M. Pagano, "Evaluating confidence interval methods for binomial proportions in clustered surveys", Journal
    of Survey Statistics and Methodology 3 (2015).

    >>> round(clustered_share([1.0, 0.0, 0.0], answers=3).high, 4) == round(wilson(1, 3).high, 4)
    True
    """
    tasks = len(task_means)
    if not tasks:
        return None
    rate = min(1.0, max(0.0, fmean(task_means)))
    between = fmean((value - rate) ** 2 for value in task_means) / tasks
    most = max(tasks, answers)
    alike = rate * (1 - rate) <= 0
    trials = float(tasks) if alike else float(most) if between <= 0 else rate * (1 - rate) / between
    trials = min(float(most), max(float(tasks), trials))
    found = wilson(rate * trials, trials)
    if found is None:
        return None
    return Interval(low=found.low, high=found.high, method=f"Wilson over {tasks} tasks, effective n = {trials:.4g}")
