"""Interval of a bounded mean: known values, symmetry, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from judges.analysis.statistics.headline import bounded_mean

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n", [1, 10, 200])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_scores_of_0_and_1_have_the_clopper_pearson_interval(n: int, share: float):
    ones = round(share * n)
    exact = binomtest(ones, n).proportion_ci(0.95, "exact")
    found = bounded_mean([1.0] * ones + [0.0] * (n - ones))
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_ends_are_quantiles_of_a_mean_with_random_weights():
    weights = [0.2, 1.0, 3.0, 0.5, 1.0, 1.0]
    """Compare with the definition: Dirichlet weights for the values and for one more at the end of the range."""
    values = np.array([0.9, 0.85, 0.0, 0.7, 1.0, 0.95])
    shares = np.array(weights or [1.0] * len(values))
    shares *= shares.sum() / (shares @ shares)
    drawn = np.random.default_rng(5).dirichlet([*shares, 1.0], size=400_000)
    found = bounded_mean(list(values), weights=weights)
    assert found.low == pytest.approx(np.quantile(drawn @ [*values, 0.0], 0.025), abs=2e-3)
    assert found.high == pytest.approx(np.quantile(drawn @ [*values, 1.0], 0.975), abs=2e-3)
