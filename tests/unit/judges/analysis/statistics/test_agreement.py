"""Agreement figures. Reference values are published or were computed with statsmodels 0.15 and irrCAC 0.4.4."""

from __future__ import annotations

import math

import pytest

from judges.analysis.statistics.agreement import (
    NOTHING_TO_COUNT,
    Confusion,
    Estimate,
    ac1,
    agreement,
    confusion_of,
    kappa,
)
from judges.analysis.statistics.intervals import Z_95

DERMATOLOGISTS = ((10, 4, 1, 0), (5, 10, 12, 2), (2, 4, 12, 5), (0, 2, 6, 13))
"""SAS/STAT User's Guide, the FREQ procedure, "Cohen's kappa coefficient": two raters of 88 patients."""
RARE_CATEGORY = ((118, 5), (2, 0))
"""K. L. Gwet, "Kappa statistic is not satisfactory for assessing the extent of agreement", 2002: the paradox."""


def error(found: Estimate) -> float:
    """Return the standard error of an interval that was not clipped."""
    assert found.low is not None and found.high is not None
    return (found.high - found.low) / 2 / Z_95


def test_kappa_has_the_published_interval() -> None:
    found = kappa(DERMATOLOGISTS)
    assert (found.value, error(found)) == (pytest.approx(0.3449, abs=5e-5), pytest.approx(0.0724, abs=5e-5))
    assert (found.low, found.high) == (pytest.approx(0.2030, abs=5e-5), pytest.approx(0.4868, abs=5e-5))


@pytest.mark.parametrize(
    ("table", "n", "value", "irr_cac_error"),
    [
        (RARE_CATEGORY, 125, 0.94077634, 0.02305696),
        (DERMATOLOGISTS, 88, 0.35107326, 0.07073098),
    ],
)
def test_ac1_and_its_standard_error_equal_those_of_irr_cac(table, n, value, irr_cac_error) -> None:
    found = ac1(table)
    assert found.value == pytest.approx(value, abs=1e-8)
    # irrCAC divides by n - 1 where the published large-sample formula divides by n.
    assert error(found) == pytest.approx(irr_cac_error * math.sqrt((n - 1) / n), rel=1e-6)


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
