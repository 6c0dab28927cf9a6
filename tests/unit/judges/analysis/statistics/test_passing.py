"""pass@k and pass^k compared with the enumeration of all subsets."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.statistics.headline import pass_at_k, pass_hat_k


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_estimates_equal_the_shares_of_all_subsets(case: tuple[int, int, int]):
    answers, successes, k = case
    outcomes = [True] * successes + [False] * (answers - successes)
    subsets = list(itertools.combinations(outcomes, k))
    assert pass_at_k(answers, successes, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_hat_k(answers, successes, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))


def test_pass_at_k_equals_hand_calculated_values():
    """M. Chen et al. (2021), equation 1: 1 - C(3, 2) / C(5, 2) = 1 - 3 / 10; with k = n, one success is certain."""
    assert pass_at_k(5, 2, 2) == 0.7
    assert pass_at_k(5, 1, 5) == 1.0
    assert pass_at_k(10, 3, 1) == pytest.approx(0.3)


def test_pass_at_k_is_not_the_biased_estimate():
    """1 - (1 - c/n)^k underestimates, which is the paper's reason for the estimator."""
    assert pass_at_k(10, 3, 5) == pytest.approx(1 - 21 / 252)
    assert pass_at_k(10, 3, 5) > 1 - 0.7**5


def test_large_counts_are_exact():
    assert pass_at_k(1000, 1, 500) == 0.5
    assert pass_hat_k(1000, 999, 500) == 0.5


@pytest.mark.parametrize(("answers", "successes", "k"), [(3, 1, 0), (3, 1, 4), (3, 4, 1), (3, -1, 1), (0, 0, 1)])
def test_invalid_counts_are_rejected(answers: int, successes: int, k: int):
    with pytest.raises(ValueError):
        pass_at_k(answers, successes, k)
