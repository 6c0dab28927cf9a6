"""An interval and the level every interval of this house is given at. Values only."""

from __future__ import annotations

from dataclasses import dataclass, replace

LEVEL = 0.95
"""Two-sided, of every interval."""
Z_95 = 1.959963984540054
"""The two-sided ``LEVEL`` quantile of the normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """``low`` to ``high`` at ``LEVEL``, and how it was computed, in words for the reader."""

    low: float
    high: float
    method: str

    def cut(self, least: float, most: float) -> Interval:
        """The part of it that the figure can reach."""
        return replace(self, low=max(least, self.low), high=min(most, self.high))

    def hull(self, other: Interval) -> Interval:
        """The interval that holds both: what is left to say when either of two worlds may be the real one."""
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))
