"""Intervals and detectable differences. Reference values are from R and from published tables and examples."""

from __future__ import annotations

import pytest

from judges.analysis.statistics.intervals import mean_interval, paired_detectable, quantile, unpaired_detectable, wilson

DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
"""Eighths of an inch: heights of crossed minus self-fertilised maize. C. Darwin (1876), in R. A. Fisher, "The Design of
Experiments" (1935)."""


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.706), (9, 2.262), (100, 1.984)],
)
def test_quantile_equals_the_published_table(freedom: int, expected: float):
    """NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, upper critical values, column 0.975."""
    assert quantile(freedom) == pytest.approx(expected, abs=5e-4)


def test_interval_of_darwins_maize_equals_fishers():
    """Fisher (1935), section 16 ff: mean 20.93, standard error 9.746 eighths, t = 2.148, and 2.145 at 14 degrees."""
    found = mean_interval(DARWIN)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((20.933 - 2.1448 * 9.746, 20.933 + 2.1448 * 9.746), abs=5e-3)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (0, 20, 0.0, 0.1611)],
)
def test_interval_equals_newcombes_table(successes: int, trials: int, low: float, high: float):
    """R. G. Newcombe, "Two-sided confidence intervals for the single proportion: comparison of seven methods",
    Statistics in Medicine 17 (1998), table I, method 3.
    """
    found = wilson(successes, trials)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("difference", "tasks"), [(0.2, 393.4057), (0.5, 63.76576), (0.8, 25.52458)])
def test_unpaired_difference_inverts_the_sample_size_of_r(difference: float, tasks: float):
    """R: power.t.test(delta = difference, power = 0.8)$n. With one task fewer the difference is not detected."""
    fewer, more = unpaired_detectable(1.0, int(tasks)), unpaired_detectable(1.0, int(tasks) + 1)
    assert fewer is not None and more is not None
    assert more < difference < fewer


def test_paired_difference_for_twenty_pairs_equals_published_tables():
    """Cohen's d for 20 pairs, two-sided 0.05, power 0.8: 0.66 (J. Cohen, 1988; G*Power 3.1 gives 0.6604)."""
    assert paired_detectable(1.0, 20) == pytest.approx(0.6604, abs=1e-4)


def test_too_few_tasks_detect_nothing():
    assert paired_detectable(1.0, 1) is None
    assert unpaired_detectable(1.0, 0) is None
