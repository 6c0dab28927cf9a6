"""The sign-flip test against Fisher's own count, and against looking at every pattern."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.statistics.sign_flip import EXACT_UP_TO, sign_flip
from tests.unit.judges.analysis.statistics.test_student import DARWIN

DIFFERENCES = st.lists(st.sampled_from([-1.0, -0.5, -1 / 3, -0.1, 0.0, 0.1, 0.2, 0.3, 1 / 3, 0.5, 1.0]), max_size=9)


def test_darwins_maize_has_fishers_count_of_patterns():
    """R. A. Fisher, "The Design of Experiments" (1935), section 21: 863 of 32,768 patterns on one side."""
    found = sign_flip(DARWIN)
    assert found is not None
    assert (found.p, found.exact, found.patterns) == (2 * 863 / 32_768, True, 32_768)


@given(DIFFERENCES)
def test_every_pattern_is_counted(differences: list[float]):
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
def test_neither_order_nor_side_nor_unit_matters(differences: list[float], random):
    first = sign_flip(differences)
    shuffled = [-100 * each for each in differences]
    random.shuffle(shuffled)
    again = sign_flip(shuffled)
    assert first is not None and again is not None
    assert first.p == pytest.approx(again.p)


def test_sums_that_tie_but_for_rounding_tie():
    """0.1 + 0.2 is not 0.3 in floats; counted apart, the three-way tie would be lost."""
    found = sign_flip([0.1, 0.2, -0.3])
    assert found is not None and found.p == 1.0


def test_tasks_that_do_not_differ_change_nothing():
    with_zeros, without = sign_flip([0.5, 0.25, 0.5, 0.0, 0.0]), sign_flip([0.5, 0.25, 0.5])
    assert with_zeros == without
    nothing = sign_flip([0.0, 0.0])
    assert nothing is not None and (nothing.p, nothing.n) == (1.0, 0)


def test_as_many_as_can_be_counted_are_and_more_are_drawn_close_to_it():
    """The same forty differences counted and, with one negligible more, drawn: within four standard errors."""
    differences = [(0.1 if nth % 3 else -0.12) * math.sqrt(nth + 1) for nth in range(EXACT_UP_TO)]
    exact, drawn = sign_flip(differences), sign_flip([*differences, 1e-6])
    assert exact is not None and drawn is not None
    assert exact.exact and exact.patterns == 2**EXACT_UP_TO
    assert not drawn.exact and "seed" in drawn.method
    error = math.sqrt(exact.p * (1 - exact.p) / drawn.patterns)
    assert abs(drawn.p - exact.p) < 4 * error
    assert drawn == sign_flip([*differences, 1e-6])


def test_a_drawn_p_is_never_nothing():
    found = sign_flip([1.0] * 60)
    assert found is not None and 0 < found.p <= 1 / found.patterns
