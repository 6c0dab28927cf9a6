"""Interval of a bounded mean: known values, symmetry, and its coverage."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from judges.analysis.statistics.headline import bounded_mean
from tests.bench.coverage import DEFAULT_METHOD, SHAPES, measured, samples

pytestmark = pytest.mark.slow

SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), min_size=1, max_size=12)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 50, 200, 1000])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_scores_of_0_and_1_have_the_clopper_pearson_interval(n: int, share: float):
    ones = round(share * n)
    exact = binomtest(ones, n).proportion_ci(0.95, "exact")
    found = bounded_mean([1.0] * ones + [0.0] * (n - ones))
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)


@pytest.mark.parametrize("weights", [None, [0.2, 1.0, 3.0, 0.5, 1.0, 1.0]])
def test_ends_are_quantiles_of_a_mean_with_random_weights(weights: list[float] | None):
    """Compare with the definition: Dirichlet weights for the values and for one more at the end of the range."""
    values = np.array([0.9, 0.85, 0.0, 0.7, 1.0, 0.95])
    shares = np.array(weights or [1.0] * len(values))
    shares *= shares.sum() / (shares @ shares)
    drawn = np.random.default_rng(5).dirichlet([*shares, 1.0], size=400_000)
    found = bounded_mean(list(values), weights=weights)
    assert found.low == pytest.approx(np.quantile(drawn @ [*values, 0.0], 0.025), abs=2e-3)
    assert found.high == pytest.approx(np.quantile(drawn @ [*values, 1.0], 0.975), abs=2e-3)


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_interval_contains_the_mean_and_is_symmetric(values: list[float]):
    found, mirrored = bounded_mean(values), bounded_mean([1 - value for value in values])
    backwards = bounded_mean(values[::-1])
    mean = sum(values) / len(values)
    assert 0 <= found.low <= mean + 1e-9 and mean - 1e-9 <= found.high <= 1
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-6)
    assert (backwards.low, backwards.high) == pytest.approx((found.low, found.high), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(SCORES, st.data())
def test_higher_score_never_lowers_an_end(values: list[float], data: st.DataObject):
    place = data.draw(st.integers(0, len(values) - 1))
    higher = [*values[:place], min(1.0, values[place] + 0.1), *values[place + 1 :]]
    first, second = bounded_mean(values), bounded_mean(higher)
    assert first.low <= second.low + 1e-6 and first.high <= second.high + 1e-6


@pytest.mark.parametrize("tasks", [5, 10])
@pytest.mark.parametrize("shape", ["skewed", "high", "all-or-nothing 95 %"])
def test_coverage_is_sufficient_where_student_intervals_fail(shape: str, tasks: int):
    """The worst shapes of docs/statistics.md in fewer runs: 93 % minus three standard errors."""
    runs = 200
    drawn, mean = list(samples(SHAPES[shape], tasks, clustered=False, runs=runs)), SHAPES[shape].mean
    found, before = measured(DEFAULT_METHOD, drawn, mean), measured("Student t", drawn, mean)
    assert found.coverage >= 0.93 - 3 * (0.93 * 0.07 / runs) ** 0.5
    assert found.passed_by_luck <= 0.05
    assert before.coverage < 0.9 or shape == "all-or-nothing 95 %"
    assert found.width < 0.7


def test_coverage_is_sufficient_for_uneven_numbers_of_answers():
    drawn = list(samples(SHAPES["skewed"], 5, clustered=True, runs=200))
    assert measured(DEFAULT_METHOD, drawn, SHAPES["skewed"].mean).coverage >= 0.93


def test_thousand_different_scores_are_fast():
    """Processor time. Measured: 25 to 45 ms in a worker thread."""
    values = np.random.default_rng(3).beta(4, 2, 1000).tolist()
    bounded_mean(values)
    before = time.thread_time()
    bounded_mean(values)
    assert time.thread_time() - before < 2


def test_empty_input_is_rejected():
    with pytest.raises(ValueError, match="at least one value"):
        bounded_mean([])
