"""Wilson interval compared with published figures."""

from __future__ import annotations

import pytest

from judges.analysis.statistics.intervals import wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_interval_equals_newcombes_table(successes: int, trials: int, low: float, high: float):
    """R. G. Newcombe, "Two-sided confidence intervals for the single proportion: comparison of seven methods",
    Statistics in Medicine 17 (1998), table I, method 3.
    """
    found = wilson(successes, trials)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_ends_are_exact_if_all_trials_agree():
    none, all_of_them = wilson(0, 7), wilson(7, 7)
    assert none is not None and all_of_them is not None
    assert (none.low, all_of_them.high) == (0.0, 1.0)
    assert none.high == pytest.approx(1 - all_of_them.low)


def test_no_trials_have_no_interval():
    assert wilson(0, 0) is None
