"""Detectable differences. Reference values are from R's ``power.t.test`` and from published tables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import nct, t

from judges.analysis.statistics.intervals import paired_detectable, unpaired_detectable


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


def power(shift: float, freedom: int) -> float:
    """Power of the two-sided test, without the other tail, which is less than 2e-6 here."""
    return float(nct.sf(t.ppf(0.975, freedom), freedom, shift))


@settings(max_examples=30)
@given(st.floats(0.01, 2), st.integers(2, 300))
def test_detectable_difference_has_the_requested_power(spread: float, tasks: int):
    paired, unpaired = paired_detectable(spread, tasks), unpaired_detectable(spread, tasks)
    assert paired is not None and unpaired is not None
    assert power(paired / spread * tasks**0.5, tasks - 1) == pytest.approx(0.8, abs=1e-5)
    assert power(unpaired / spread * (tasks / 2) ** 0.5, 2 * tasks - 2) == pytest.approx(0.8, abs=1e-5)
