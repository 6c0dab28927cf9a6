"""Power and detectable differences. Reference values are from R's documentation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.analysis.statistics.student import (
    paired_detectable,
    paired_power,
    unpaired_detectable,
    unpaired_power,
)


def test_power_equals_the_example_of_r():
    """R, ?power.t.test: power.t.test(n = 20, delta = 1, sd = 1) gives power = 0.8689528; strict = TRUE, which
    counts both tails as this code does, gives 0.8689530.
    """
    assert unpaired_power(1, 1, 20) == pytest.approx(0.8689530, abs=5e-8)


def test_unpaired_difference_inverts_the_example_of_r():
    """R, ?power.t.test: power.t.test(power = .90, delta = 1) gives n = 22.02110, so n = 22 detects just over 1."""
    found = unpaired_detectable(1, 22, power=0.9)
    assert found is not None and found == pytest.approx(1.0005, abs=5e-4)
    assert unpaired_power(1, 1, 22) < 0.9 < unpaired_power(1, 1, 23)


def test_paired_difference_for_twenty_pairs_equals_published_tables():
    """Cohen's d for 20 pairs, two-sided 0.05, power 0.8: 0.66 (J. Cohen, 1988; G*Power 3.1 gives 0.6604)."""
    assert paired_detectable(1.0, 20) == pytest.approx(0.6604, abs=1e-4)


def test_too_few_tasks_detect_nothing():
    assert paired_detectable(1.0, 1) is None
    assert unpaired_detectable(1.0, 0) is None


@settings(max_examples=30)
@given(st.floats(0.01, 2), st.integers(2, 300))
def test_detectable_difference_has_the_requested_power(spread: float, tasks: int):
    paired, unpaired = paired_detectable(spread, tasks), unpaired_detectable(spread, tasks)
    assert paired is not None and unpaired is not None
    assert paired_power(paired, spread, tasks) == pytest.approx(0.8, abs=1e-6)
    assert unpaired_power(unpaired, spread, tasks) == pytest.approx(0.8, abs=1e-6)


def test_power_without_a_difference_is_the_significance_level():
    assert paired_power(0.0, 1.0, 12) == pytest.approx(0.05)
