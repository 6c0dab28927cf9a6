"""Bootstrap intervals of cases whose resamples can be enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judges.analysis.statistics import bootstrap
from judges.analysis.statistics.bootstrap import draws, mean_interval, mean_over_runs_interval, ratio_intervals


def test_every_resample_has_as_many_clusters_as_the_data():
    blocks = list(draws(7, seed=1, resamples=600))
    assert sum(len(block) for block in blocks) == 600
    assert all((block.sum(axis=1) == 7).all() and (block >= 0).all() for block in blocks)


def test_resamples_are_drawn_uniformly():
    """The 27 ordered draws of 3 from 3 are equally likely: 10 combinations with known probabilities."""
    counts: dict[tuple[float, ...], float] = {}
    for block in draws(3, seed=5, resamples=40_000):
        for row in block:
            counts[tuple(row)] = counts.get(tuple(row), 0) + 1 / 40_000
    listed: dict[tuple[float, ...], float] = {}
    for drawn in itertools.product(range(3), repeat=3):
        key = tuple(float(drawn.count(nth)) for nth in range(3))
        listed[key] = listed.get(key, 0) + 1 / 27
    assert counts.keys() == listed.keys()
    assert all(counts[key] == pytest.approx(share, abs=0.01) for key, share in listed.items())


def test_percentiles_equal_those_of_the_enumerated_resamples():
    """Exact percentiles of the means of all 4^4 resamples of four values."""
    values = [0.0, 0.2, 0.5, 1.0]
    means = [np.mean(each) for each in itertools.product(values, repeat=4)]
    low, high = np.quantile(means, [0.025, 0.975])
    found = mean_interval(values)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.03)


def test_equal_data_and_seed_give_equal_intervals():
    values = [0.1, 0.9, 0.4, 0.4]
    assert mean_interval(values) == mean_interval(values) != mean_interval(values, seed=1)
    assert mean_interval(values).method == "bootstrap over 4 tasks, 10000 resamples, seed 20250101"  # type: ignore[union-attr]


def test_data_without_spread_has_no_interval():
    assert mean_interval([0.5]) is None
    assert mean_interval([0.5, 0.5]) is None


def test_large_samples_approach_the_normal_interval():
    values = [nth % 2 * 1.0 for nth in range(400)]
    found = mean_interval(values)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.5 - 1.96 * 0.025, 0.5 + 1.96 * 0.025), abs=0.005)


def test_ratio_weights_clusters_by_size():
    """One cluster of nine ones and one of a single 0: a mean over ten steps, not over two tasks."""
    [(low, high)] = ratio_intervals(np.array([[9.0], [0.0]]), np.array([9.0, 1.0]), seed=0, resamples=1000)
    assert (low, high) == (0.0, 1.0)
    drawn = next(bootstrap.draws(2, seed=0, resamples=1))
    assert ((drawn @ np.array([[9.0], [0.0]])) / (drawn @ np.array([9.0, 1.0]))[:, None])[0, 0] in (0.0, 0.9, 1.0)


def test_mean_over_runs_uses_only_the_tasks_of_each_run():
    """Run 2 has only the second task; a draw without that task uses run 1 only."""
    sums = np.array([[1.0, 0.0], [0.0, 1.0]])
    present = np.array([[1.0, 0.0], [1.0, 1.0]])
    low, high = mean_over_runs_interval(sums, present, resamples=4000)
    # Draws: both tasks (0.5 + 1) / 2 = 0.75 in half of them, the first twice 1.0, the second twice (0 + 1) / 2 = 0.5.
    assert (low, high) == (0.5, 1.0)
