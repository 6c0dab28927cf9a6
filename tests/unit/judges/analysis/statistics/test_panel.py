"""Effective number of votes and gain in kappa: known cases, identities, and coverage of the intervals."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.statistics.agreement import confusion_of, kappa
from judges.analysis.statistics.panel import effective_votes, kappa_gain

Errors = dict[tuple[bool, ...], int]


@st.composite
def panels(draw: st.DrawFn) -> Errors:
    raters = draw(st.integers(2, 5))
    each = st.tuples(*[st.booleans()] * raters)
    return Counter(draw(st.lists(each, min_size=1, max_size=60)))


def test_raters_that_err_together_are_one_vote_and_independent_ones_are_all() -> None:
    together: Errors = {(True,) * 5: 10, (False,) * 5: 30}
    rho, votes = effective_votes(together)
    assert (rho, votes.value, votes.low) == (pytest.approx(1), pytest.approx(1), None)
    assert votes.reason is not None and "variance is 0" in votes.reason

    independent: Errors = dict.fromkeys(itertools.product((True, False), repeat=3), 25)
    rho, votes = effective_votes(independent)
    assert (rho, votes.value, votes.n) == (pytest.approx(0), pytest.approx(3), 200)
    assert votes.low is not None and votes.high is not None and votes.low < 3 < votes.high


def test_panel_without_errors_or_with_errors_that_cancel_has_a_reason_instead_of_a_number() -> None:
    assert effective_votes({})[1].reason == "no item to count"
    rho, votes = effective_votes({(False, False): 9, (True, False): 0})
    assert (rho, votes.value) == (None, None) and "no rater errs" in str(votes.reason)
    rho, votes = effective_votes({(True, False): 5, (False, True): 5})
    assert (rho, votes.value) == (pytest.approx(-1), None) and "cancel" in str(votes.reason)
    with pytest.raises(ValueError, match="at least two raters"):
        effective_votes({(True,): 3})
    with pytest.raises(ValueError, match="at least two raters"):
        effective_votes({(True, False): 3, (True, False, False): 3})


@given(panels())
def test_votes_follow_the_design_effect_of_the_pooled_correlation(errors: Errors) -> None:
    rows = np.array([each for each, count in errors.items() for _ in range(count)], dtype=float)
    rho, votes = effective_votes(errors)
    if rho is None:
        assert not rows.var(axis=0).any()
        return
    covariance = np.atleast_2d(np.cov(rows, rowvar=False, bias=True))
    raters = rows.shape[1]
    variances = np.trace(covariance)
    assert rho == pytest.approx((covariance.sum() - variances) / (raters - 1) / variances, abs=1e-9)
    if votes.value is not None:
        assert votes.value == pytest.approx(raters / (1 + (raters - 1) * rho), rel=1e-6)
        # The mean of the votes has the variance of that many independent votes.
        assert rows.mean(axis=1).var() == pytest.approx(variances / raters / votes.value, rel=1e-6)


@given(panels())
def test_votes_do_not_depend_on_the_order_of_the_raters(errors: Errors) -> None:
    reverse: Counter[tuple[bool, ...]] = Counter()
    for each, count in errors.items():
        reverse[each[::-1]] += count
    one, other = effective_votes(errors)[1], effective_votes(reverse)[1]
    for name in ("value", "low", "high"):
        figure = getattr(other, name)
        assert getattr(one, name) == (None if figure is None else pytest.approx(figure, rel=1e-6))


def test_interval_of_the_votes_covers_the_true_number() -> None:
    """Four raters err together with a shared difficulty of the item: simulated panels with a known correlation."""
    random = np.random.default_rng(7)
    rate, shared = 0.25, 0.5  # with probability `shared`, a rater copies the common error of the item
    true_rho = shared**2
    true = 4 / (1 + 3 * true_rho)
    covered = 0
    for _ in range(400):
        common = random.random(300) < rate
        own = random.random((300, 4)) < rate
        copies = random.random((300, 4)) < shared
        errors = np.where(copies, common[:, None], own)
        votes = effective_votes(Counter(map(tuple, errors.tolist())))[1]
        assert votes.low is not None and votes.high is not None
        covered += votes.low <= true <= votes.high
    assert 0.92 <= covered / 400 <= 0.98


def test_gain_in_kappa_is_the_difference_of_the_kappas_and_its_interval_covers_it() -> None:
    random = np.random.default_rng(11)
    true_gain = None
    covered = 0
    for n in (400_000, *[300] * 400):
        human = random.random(n) < 0.6
        hard = random.random(n) < 0.3
        first = human ^ (random.random(n) < np.where(hard, 0.25, 0.05))
        second = human ^ (random.random(n) < np.where(hard, 0.4, 0.1))
        counts = Counter(zip(first.tolist(), second.tolist(), human.tolist(), strict=True))
        gain = kappa_gain(counts)
        if true_gain is None:
            pairs = (zip(each.tolist(), human.tolist(), strict=True) for each in (first, second))
            one, other = (kappa(confusion_of(each).table).value for each in pairs)
            assert one is not None and other is not None
            assert gain.value == pytest.approx(one - other)
            true_gain = gain.value
            continue
        assert gain.low is not None and gain.high is not None and true_gain is not None
        covered += gain.low <= true_gain <= gain.high
    assert 0.92 <= covered / 400 <= 0.98


def test_interval_of_the_gain_over_a_judge_without_information_is_that_of_kappa() -> None:
    """A judge that passes everything has kappa 0 on every sample, so only the variance of the first remains."""
    counts = {(True, True, True): 40, (True, True, False): 7, (False, True, True): 5, (False, True, False): 28}
    gain = kappa_gain(counts)
    alone = kappa(((40, 7), (5, 28)))
    assert gain.value == pytest.approx(alone.value)
    assert (gain.low, gain.high) == (pytest.approx(alone.low), pytest.approx(alone.high))


def test_gain_without_items_with_one_category_or_over_itself_has_no_interval() -> None:
    assert kappa_gain({}).reason == "no item to count"
    assert "same category" in str(kappa_gain({(True, True, True): 4}).reason)
    same = kappa_gain({(True, True, True): 4, (False, False, False): 3, (True, True, False): 2})
    assert (same.value, same.low) == (0, None)
    assert not math.isnan(same.value or 0)
