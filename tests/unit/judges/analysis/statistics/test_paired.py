"""Paired differences, sign-flip test and Holm correction, compared with published figures and enumerations."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.statistics.paired import EXACT_UP_TO, holm, interval_over_bounds, paired, sign_flip
from tests.unit.judges.analysis.statistics.test_intervals import DARWIN


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


def test_open_tasks_widen_the_interval_to_both_bounds():
    certain = interval_over_bounds([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    found = interval_over_bounds([0.1, 0.2, -0.5], [0.1, 0.2, 0.5])
    assert certain is not None and found is not None
    assert found.low < certain.low < certain.high < found.high
    assert interval_over_bounds([0.1, 0.1], [0.1, 0.3]) is None


DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.5, -1 / 3, -0.1, 0.0, 0.1, 0.2, 0.3, 1 / 3, 0.5, 1.0]), max_size=9)


def test_darwins_maize_has_fishers_count_of_patterns():
    """R. A. Fisher, "The Design of Experiments" (1935), section 21: 863 of 32,768 patterns on one side."""
    found = sign_flip(DARWIN)
    assert found is not None
    assert (found.p, found.exact, found.patterns) == (2 * 863 / 32_768, True, 32_768)


@given(DIFFERENCES)
def test_p_value_equals_the_enumeration_of_all_patterns(differences: list[float]):
    found = sign_flip(differences)
    if not differences:
        assert found is None
        return
    observed = abs(math.fsum(differences))
    patterns = list(itertools.product((-1, 1), repeat=len(differences)))
    sums = [abs(math.fsum(s * d for s, d in zip(signs, differences, strict=True))) for signs in patterns]
    expected = sum(one >= observed - 1e-9 for one in sums) / len(patterns)
    assert found is not None
    assert found.p == pytest.approx(expected)


def test_sums_equal_up_to_rounding_are_ties():
    """0.1 + 0.2 is not 0.3 in floats. An exact comparison would miss this tie."""
    found = sign_flip([0.1, 0.2, -0.3])
    assert found is not None and found.p == 1.0


def test_sampled_p_value_is_close_to_the_exact_one():
    """Forty differences enumerated and, with one negligible more, sampled: within four standard errors."""
    differences = [(0.1 if nth % 3 else -0.12) * math.sqrt(nth + 1) for nth in range(EXACT_UP_TO)]
    exact, drawn = sign_flip(differences), sign_flip([*differences, 1e-6])
    assert exact is not None and drawn is not None
    assert exact.exact and exact.patterns == 2**EXACT_UP_TO
    assert not drawn.exact and "seed" in drawn.method
    error = math.sqrt(exact.p * (1 - exact.p) / drawn.patterns)
    assert abs(drawn.p - exact.p) < 4 * error
    assert drawn == sign_flip([*differences, 1e-6])


P_VALUES = st.lists(st.floats(0, 1), max_size=12)


def test_correction_equals_that_of_r():
    """R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") gives 0.05 0.08 0.09 0.09 0.09."""
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])


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
