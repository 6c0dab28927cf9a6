"""Sign-flip test compared with Fisher's count and with the enumeration of all patterns."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.statistics.paired import EXACT_UP_TO, sign_flip
from tests.unit.judges.analysis.statistics.test_student import DARWIN

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


@given(DIFFERENCES.filter(len), st.randoms())
def test_p_value_is_independent_of_order_sign_and_unit(differences: list[float], random):
    first = sign_flip(differences)
    shuffled = [-100 * difference for difference in differences]
    random.shuffle(shuffled)
    again = sign_flip(shuffled)
    assert first is not None and again is not None
    assert first.p == pytest.approx(again.p)


def test_sums_equal_up_to_rounding_are_ties():
    """0.1 + 0.2 is not 0.3 in floats. An exact comparison would miss this tie."""
    found = sign_flip([0.1, 0.2, -0.3])
    assert found is not None and found.p == 1.0


def test_tasks_without_a_difference_are_ignored():
    with_zeros, without = sign_flip([0.5, 0.25, 0.5, 0.0, 0.0]), sign_flip([0.5, 0.25, 0.5])
    assert with_zeros == without
    nothing = sign_flip([0.0, 0.0])
    assert nothing is not None and (nothing.p, nothing.n) == (1.0, 0)


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


def test_sampled_p_value_is_never_zero():
    found = sign_flip([1.0] * 60)
    assert found is not None and 0 < found.p <= 1 / found.patterns
