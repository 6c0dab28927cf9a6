"""Student's t: quantiles and intervals. Reference values are from published tables and examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.statistics.intervals import mean_interval, quantile

DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
"""Eighths of an inch: heights of crossed minus self-fertilised maize. C. Darwin (1876), in R. A. Fisher, "The Design of
Experiments" (1935)."""


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706), (2, 4.303), (5, 2.571), (9, 2.262), (10, 2.228), (30, 2.042), (100, 1.984)],
)
def test_quantile_equals_the_published_table(freedom: int, expected: float):
    """NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper critical values, column 0.975."""
    assert quantile(freedom) == pytest.approx(expected, abs=5e-4)


def test_interval_of_darwins_maize_equals_fishers():
    """Fisher (1935), section 16 ff: mean 20.93, standard error 9.746 eighths, t = 2.148, and 2.145 at 14 degrees."""
    found = mean_interval(DARWIN)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((20.933 - 2.1448 * 9.746, 20.933 + 2.1448 * 9.746), abs=5e-3)


def test_values_without_spread_have_no_interval():
    assert mean_interval([]) is None
    assert mean_interval([0.5]) is None
    assert mean_interval([1.0, 1.0, 1.0]) is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_interval_is_symmetric_about_the_mean(values: list[float]):
    found = mean_interval(values)
    if found is not None:
        assert (found.low + found.high) / 2 == pytest.approx(sum(values) / len(values), abs=1e-9)
        assert found.method == f"Student t over {len(values)} tasks"
