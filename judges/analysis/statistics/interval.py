"""Confidence interval, and the confidence level of all intervals of the project."""

from __future__ import annotations

from dataclasses import dataclass, replace

LEVEL = 0.95
"""Two-sided confidence level of all intervals."""
Z_95 = 1.959963984540054
"""The two-sided ``LEVEL`` quantile of the normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Confidence interval at ``LEVEL``. ``method`` describes how it was computed."""

    low: float
    high: float
    method: str

    def cut(self, least: float, most: float) -> Interval:
        """Return the interval limited to the possible range of the figure."""
        return replace(self, low=max(least, self.low), high=min(most, self.high))

    def hull(self, other: Interval) -> Interval:
        """Return the smallest interval that contains both."""
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))
