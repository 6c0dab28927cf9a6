"""Agreement figures. Reference values are published or were computed with statsmodels 0.15 and irrCAC 0.4.4."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.statistics.agreement import (
    NO_VARIANCE,
    NOTHING_TO_COUNT,
    ONE_CATEGORY,
    Agreement,
    Confusion,
    Estimate,
    ac1,
    agreement,
    confusion_of,
    kappa,
    share_estimate,
)
from judges.analysis.statistics.intervals import Z_95

DERMATOLOGISTS = ((10, 4, 1, 0), (5, 10, 12, 2), (2, 4, 12, 5), (0, 2, 6, 13))
"""SAS/STAT User's Guide, the FREQ procedure, "Cohen's kappa coefficient": two raters of 88 patients."""
RARE_CATEGORY = ((118, 5), (2, 0))
"""K. L. Gwet, "Kappa statistic is not satisfactory for assessing the extent of agreement", 2002: the paradox."""
GRANTS = ((20, 5), (10, 15))
"""A common textbook example: fifty proposals, two readers."""


def error(found: Estimate) -> float:
    """Return the standard error of an interval that was not clipped."""
    assert found.low is not None and found.high is not None
    return (found.high - found.low) / 2 / Z_95


def test_kappa_equals_textbook_values() -> None:
    assert kappa(GRANTS).value == pytest.approx(0.4)
    assert kappa(RARE_CATEGORY).value == pytest.approx(-0.0234, abs=5e-5)


def test_kappa_has_the_published_interval() -> None:
    found = kappa(DERMATOLOGISTS)
    assert (found.value, error(found)) == (pytest.approx(0.3449, abs=5e-5), pytest.approx(0.0724, abs=5e-5))
    assert (found.low, found.high) == (pytest.approx(0.2030, abs=5e-5), pytest.approx(0.4868, abs=5e-5))


def test_standard_error_of_kappa_equals_that_of_statsmodels() -> None:
    assert error(kappa(GRANTS)) == pytest.approx(0.12699606293110)
    assert error(kappa(RARE_CATEGORY)) == pytest.approx(0.01228675667284)


def test_ac1_stays_high_for_a_rare_category() -> None:
    assert ac1(RARE_CATEGORY).value == pytest.approx(0.9408, abs=5e-5)


@pytest.mark.parametrize(
    ("table", "n", "value", "irr_cac_error"),
    [
        (RARE_CATEGORY, 125, 0.94077634, 0.02305696),
        (GRANTS, 50, 0.40594059, 0.13147309),
        (DERMATOLOGISTS, 88, 0.35107326, 0.07073098),
        (((40, 9), (6, 45)), 100, 0.70074813, 0.07171126),
    ],
)
def test_ac1_and_its_standard_error_equal_those_of_irr_cac(table, n, value, irr_cac_error) -> None:
    found = ac1(table)
    assert found.value == pytest.approx(value, abs=1e-8)
    # irrCAC divides by n - 1 where the published large-sample formula divides by n.
    assert error(found) == pytest.approx(irr_cac_error * math.sqrt((n - 1) / n), rel=1e-6)


def test_share_has_a_wilson_interval() -> None:
    # R. G. Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263, and 0 of 20.
    found = share_estimate(81, 263, none="-")
    assert (found.low, found.high) == (pytest.approx(0.2553, abs=5e-5), pytest.approx(0.3662, abs=5e-5))
    found = share_estimate(0, 20, none="-")
    assert (found.low, found.high) == (0.0, pytest.approx(0.1611, abs=5e-5))


def test_agreement_with_humans_has_raw_tpr_tnr_and_kappa() -> None:
    got = agreement(Confusion(true_positive=8, false_positive=3, false_negative=2, true_negative=7))

    assert (got.raw.value, got.tpr.value, got.tnr.value) == (0.75, 0.8, 0.7)
    assert (got.raw.n, got.tpr.n, got.tnr.n) == (20, 10, 10)
    assert got.kappa.value == pytest.approx(0.5)


def test_confusion_pairs_are_judge_first() -> None:
    got = confusion_of([(True, True), (True, False), (True, False), (False, True), (False, False)])
    assert got == Confusion(true_positive=1, false_positive=2, false_negative=1, true_negative=1)


def test_empty_confusion_has_reasons_instead_of_figures() -> None:
    got = agreement(Confusion())
    for one in (got.raw, got.kappa, got.ac1):
        assert (one.value, one.low, one.high, one.n, one.reason) == (None, None, None, 0, NOTHING_TO_COUNT)
    assert (got.tpr.value, got.tpr.reason) == (None, "humans passed no item")
    assert (got.tnr.value, got.tnr.reason) == (None, "humans failed no item")


def test_kappa_is_undefined_for_a_single_category() -> None:
    got = agreement(Confusion(true_positive=12))
    assert (got.kappa.value, got.kappa.reason) == (None, ONE_CATEGORY)
    assert (got.ac1.value, got.ac1.low, got.ac1.reason) == (1.0, None, NO_VARIANCE)
    assert (got.tpr.value, got.tnr.value) == (1.0, None)
    assert got.raw.low == pytest.approx(0.7575, abs=5e-5)  # the Wilson interval depends on n


@pytest.mark.parametrize("table", [((5, 0), (0, 5)), ((0, 5), (5, 0)), ((5, 5), (0, 0))])
def test_zero_variance_gives_no_interval(table) -> None:
    found = kappa(table)
    assert found.value is not None
    assert (found.low, found.high, found.reason) == (None, None, NO_VARIANCE)


def test_invalid_table_is_rejected() -> None:
    with pytest.raises(ValueError, match="square"):
        kappa(((1, 2),))
    with pytest.raises(ValueError, match="negative"):
        ac1(((1, 2), (-1, 3)))
    with pytest.raises(ValueError, match="negative"):
        Confusion(true_positive=-1)


COUNTS = st.integers(min_value=0, max_value=400)


@given(tp=COUNTS, fp=COUNTS, fn=COUNTS, tn=COUNTS)
def test_figures_are_in_range_or_have_a_reason(tp: int, fp: int, fn: int, tn: int) -> None:
    got = agreement(Confusion(true_positive=tp, false_positive=fp, false_negative=fn, true_negative=tn))
    for name in (one.name for one in fields(Agreement) if one.name != "confusion"):
        found = getattr(got, name)
        bottom = -1.0 if name in {"kappa", "ac1"} else 0.0
        assert (found.value is None or found.low is None) == (found.reason is not None)
        if found.value is not None:
            assert bottom - 1e-9 <= found.value <= 1 + 1e-9
        if found.low is not None:
            assert found.value is not None and found.high is not None
            assert bottom <= found.low <= found.value + 1e-9 and found.value - 1e-9 <= found.high <= 1.0


@given(tp=COUNTS, fp=COUNTS, fn=COUNTS, tn=COUNTS)
def test_agreement_is_symmetric(tp: int, fp: int, fn: int, tn: int) -> None:
    one = agreement(Confusion(true_positive=tp, false_positive=fp, false_negative=fn, true_negative=tn))
    other = agreement(Confusion(true_positive=tp, false_positive=fn, false_negative=fp, true_negative=tn))
    for name in ("raw", "kappa", "ac1"):
        assert getattr(one, name).value == pytest.approx(getattr(other, name).value)
