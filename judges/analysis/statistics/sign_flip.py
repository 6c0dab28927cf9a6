"""The sign-flip permutation test of paired differences: had the two sides been swapped in any task, how often would the
mean differ as much? Exact up to ``EXACT_UP_TO`` differences that are not 0, by chance with a seed beyond. Pure; numpy
is loaded when it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judges.analysis.statistics.bootstrap import SEED

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats

FEWEST_TASKS = 6
"""With fewer tasks that differ no p is below 0.05: the smallest of five is 2 of 32 sign patterns, or 0.0625."""
EXACT_UP_TO = 40
"""So many differences have 2^40 sign patterns, which two sorted halves of 2^20 sums count in under a second."""
DRAWS = 100_000
_BLOCK = 2_000
_ROUNDING = 1e-9
"""Sums that differ by less than this share of the largest one are the same but for rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """``p`` of the two-sided test. ``patterns`` is how many sign patterns were looked at: all of them if ``exact``.

    ``n`` counts the differences that are not 0; the others have no sign to flip and change nothing.
    """

    p: float
    n: int
    exact: bool
    patterns: int
    method: str

    @property
    def smallest_p(self) -> float:
        """The smallest ``p`` that so many tasks can give: all differences have the same sign."""
        return min(1.0, 2 / 2**self.n) if self.exact else 1 / (self.patterns + 1)


def sign_flip(differences: Sequence[float], *, seed: int = SEED, draws: int = DRAWS) -> SignFlip | None:
    """The two-sided test that paired differences are symmetric about 0; None without a pair.

    R. A. Fisher, "The Design of Experiments" (1935), section 21. Beyond ``EXACT_UP_TO`` differences patterns are
    drawn, and the observed one is counted among them, so that ``p`` is never 0: B. Phipson, G. K. Smyth, "Permutation
    P-values should never be zero", Statistical Applications in Genetics and Molecular Biology 9 (2010).
    """
    if not differences:
        return None
    sizes = [abs(each) for each in differences if each != 0]
    if not sizes:
        return SignFlip(p=1.0, n=0, exact=True, patterns=1, method="exact sign-flip: no task differs")
    observed = abs(math.fsum(differences))
    # A pattern whose sum ties with the observed one must count, whatever order it was added up in.
    least = observed - _ROUNDING * math.fsum(sizes)
    n = len(sizes)
    if n <= EXACT_UP_TO:
        reached, patterns = _counted(sizes, least), 2**n
        return SignFlip(
            p=reached / patterns, n=n, exact=True, patterns=patterns, method=f"exact sign-flip of {n} tasks"
        )
    reached = _drawn(sizes, least, seed=seed, draws=draws)
    return SignFlip(
        p=(reached + 1) / (draws + 1),
        n=n,
        exact=False,
        patterns=draws,
        method=f"sign-flip of {n} tasks, {draws} patterns drawn, seed {seed}",
    )


def _counted(sizes: Sequence[float], least: float) -> int:
    """How many of all sign patterns have a sum of at least ``least`` in size, by pairs out of two listed halves."""
    if least <= 0:
        return 1 << len(sizes)
    import numpy as np

    left, right = _sums(sizes[: len(sizes) // 2]), _sums(sizes[len(sizes) // 2 :])
    right.sort()
    left.sort()  # queries in order are several times faster than at random
    below = int(np.searchsorted(right, least - left, side="left").sum())
    # Each pattern has a mirror image whose sum is the same below 0.
    return 2 * (len(left) * len(right) - below)


def _sums(sizes: Sequence[float]) -> Floats:
    """The sums under all sign patterns."""
    import numpy as np

    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def _drawn(sizes: Sequence[float], least: float, *, seed: int, draws: int) -> int:
    """How many of ``draws`` random patterns have a sum of at least ``least`` in size."""
    import numpy as np

    random, values, reached = np.random.default_rng(seed), np.asarray(sizes), 0
    for start in range(0, draws, _BLOCK):
        signs = random.integers(0, 2, size=(min(_BLOCK, draws - start), len(values)))
        reached += int((np.abs((2 * signs - 1) @ values) >= least).sum())
    return reached
