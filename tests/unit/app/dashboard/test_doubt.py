"""Which verdicts are worth a second look."""

from __future__ import annotations

from app.dashboard.review import doubtful_leaves
from rubrics.verdict import Quote
from tests.fakes.judged import FAILED, NOT_JUDGED, leaf, result_of, rubric_of

URL = ["https://a.example/"]
QUOTE = [Quote(text="x", page_id="p", start=0, end=1)]


def found(*leaves):
    return [
        (one.leaf.key, round(one.doubt, 2), round(one.worth, 2))
        for one in doubtful_leaves(result_of(rubric_of(*leaves)))
    ]


def test_doubt_times_effect_decides_the_order():
    split = leaf("split", claim="x", sources=URL, quotes=QUOTE, votes=(True, False, True), weight=2)
    silent = leaf("silent", NOT_JUDGED, claim="x", sources=URL)
    assert found(split, silent) == [("split", 0.67, 0.67), ("silent", 1.0, 0.33)]


def test_a_supported_claim_without_a_quote_is_in_doubt():
    assert found(leaf("a", claim="x", sources=URL)) == [("a", 0.6, 1.0)]


def test_orders_in_a_page_put_its_verdict_in_doubt():
    assert found(leaf("a", FAILED, claim="x", sources=URL, signals=["orders_in_page"], votes=(False,)))[0][1] == 0.9


def test_a_clear_verdict_is_not_in_doubt():
    assert found(leaf("a", claim="x", sources=URL, quotes=QUOTE), leaf("b", FAILED, claim="y", votes=(False,))) == []
