"""Wilson's interval against published figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.statistics.wilson import clustered_share, wilson

RATES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_is_that_of_newcombes_table(successes: int, trials: int, low: float, high: float):
    """R. G. Newcombe, "Two-sided confidence intervals for the single proportion: comparison of seven methods",
    Statistics in Medicine 17 (1998), table I, method 3.
    """
    found = wilson(successes, trials)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_the_ends_are_exact_where_all_trials_came_out_alike():
    none, all_of_them = wilson(0, 7), wilson(7, 7)
    assert none is not None and all_of_them is not None
    assert (none.low, all_of_them.high) == (0.0, 1.0)
    assert none.high == pytest.approx(1 - all_of_them.low)


def test_no_trial_has_no_interval():
    assert wilson(0, 0) is None
    assert clustered_share([], answers=0) is None


def test_one_answer_a_task_is_the_plain_interval():
    found, plain = clustered_share([1.0, 0.0, 1.0, 0.0, 0.0], answers=5), wilson(2, 5)
    assert found is not None and plain is not None
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_answers_that_agree_within_their_tasks_count_once():
    """Four tasks with five answers each that always agree are four trials, not twenty."""
    found, four, twenty = clustered_share([1.0, 1.0, 0.0, 0.0], answers=20), wilson(2, 4), wilson(10, 20)
    assert found is not None and four is not None and twenty is not None
    assert (found.low, found.high) == pytest.approx((four.low, four.high))
    assert found.low < twenty.low


def test_answers_that_differ_within_every_task_alike_count_each():
    found, twenty = clustered_share([0.5, 0.5, 0.5, 0.5], answers=20), wilson(10, 20)
    assert found is not None and twenty is not None
    assert (found.low, found.high) == pytest.approx((twenty.low, twenty.high))


@given(RATES, st.integers(1, 5))
def test_the_interval_holds_the_mean_and_is_no_narrower_than_all_answers_would_make_it(rates: list[float], each: int):
    found, most = clustered_share(rates, answers=len(rates) * each), len(rates) * each
    mean = sum(rates) / len(rates)
    narrowest = wilson(mean * most, most)
    assert found is not None and narrowest is not None
    assert 0 <= found.low <= mean + 1e-9 and mean - 1e-9 <= found.high <= 1
    assert found.high - found.low >= narrowest.high - narrowest.low - 1e-9
