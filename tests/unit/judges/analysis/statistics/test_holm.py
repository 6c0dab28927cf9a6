"""Holm correction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.statistics.paired import holm

P_VALUES = st.lists(st.floats(0, 1), max_size=12)


def test_correction_equals_that_of_r():
    """R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") gives 0.05 0.08 0.09 0.09 0.09."""
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])


def test_values_keep_their_order():
    """Expected: 0.005 * 4, 0.01 * 3, then 0.03 * 2 = 0.06, and 0.04 * 1 must not be less than that."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(P_VALUES)
def test_corrected_values_lie_between_uncorrected_and_bonferroni(p_values: list[float]):
    for before, after in zip(p_values, holm(p_values), strict=True):
        assert before <= after <= min(1.0, len(p_values) * before) + 1e-12


@given(P_VALUES, st.floats(0.001, 0.5))
def test_rejections_equal_those_of_the_step_down_procedure(p_values: list[float], level: float):
    """The procedure as Holm (1979) states it: stop at the first p(k) above level / (m - k + 1)."""
    rejected: set[int] = set()
    order = sorted(range(len(p_values)), key=lambda nth: p_values[nth])
    for rank, nth in enumerate(order):
        if (len(p_values) - rank) * p_values[nth] > level:
            break
        rejected.add(nth)
    assert {nth for nth, p in enumerate(holm(p_values)) if p <= level} == rejected
