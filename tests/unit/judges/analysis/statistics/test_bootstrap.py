"""Bootstrap intervals of cases whose resamples can be enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judges.analysis.statistics.bootstrap import mean_interval


def test_percentiles_equal_those_of_the_enumerated_resamples():
    """Exact percentiles of the means of all 4^4 resamples of four values."""
    values = [0.0, 0.2, 0.5, 1.0]
    means = [np.mean(each) for each in itertools.product(values, repeat=4)]
    low, high = np.quantile(means, [0.025, 0.975])
    found = mean_interval(values)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.03)
