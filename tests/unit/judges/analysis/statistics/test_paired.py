from __future__ import annotations

import pytest

from judges.analysis.statistics.paired import interval_over_bounds, paired
from tests.unit.judges.analysis.statistics.test_student import DARWIN


def test_darwins_maize_has_the_published_figures():
    """Scaled to -1..1. Fisher (1935): t gives 0.0497, the permutations 0.0527: both intervals almost contain 0."""
    found = paired([each / 100 for each in DARWIN])
    assert found is not None and found.student is not None and found.bootstrap is not None
    assert found.difference == pytest.approx(0.20933, abs=1e-5)
    assert found.spread == pytest.approx(0.3774, abs=1e-4)
    assert found.student.low == pytest.approx(0.00031, abs=1e-5)
    assert found.sign_flip.p == 1726 / 32_768
    # Cohen's d for 15 pairs at power 0.8 is 0.778 (G*Power 3.1); times the spread.
    assert found.detectable == pytest.approx(0.778 * 0.3774, abs=1e-3)
    assert 0 < found.bootstrap.low < found.difference < found.bootstrap.high


def test_no_pairs_give_nothing_and_one_pair_gives_no_intervals():
    assert paired([]) is None
    one = paired([0.5])
    assert one is not None
    assert (one.n, one.difference, one.spread, one.student, one.bootstrap, one.detectable) == (1, 0.5, *[None] * 4)
    assert one.sign_flip.p == 1.0


def test_equal_differences_have_a_p_value_but_no_interval():
    found = paired([0.25] * 8)
    assert found is not None
    assert (found.student, found.bootstrap, found.detectable) == (None, None, None)
    assert found.sign_flip.p == 2 / 2**8


def test_interval_of_differences_stays_within_their_range():
    found = paired([1.0, 1.0, 0.9, 1.0])
    assert found is not None and found.student is not None and found.student.high == 1.0


def test_open_tasks_widen_the_interval_to_both_bounds():
    certain = interval_over_bounds([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    found = interval_over_bounds([0.1, 0.2, -0.5], [0.1, 0.2, 0.5])
    assert certain is not None and found is not None
    assert found.low < certain.low < certain.high < found.high
    assert interval_over_bounds([0.1, 0.1], [0.1, 0.3]) is None
