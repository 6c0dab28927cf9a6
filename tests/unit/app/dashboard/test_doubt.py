"""Doubt: which verdicts need a review."""

from __future__ import annotations

from app.dashboard.review import doubtful_leaves
from rubrics.verdict import Quote
from tests.fakes.judged import FAILED, NOT_JUDGED, leaf, result_of, rubric_of

URL = ["https://a.example/"]
QUOTE = [Quote(text="x", page_id="p", start=0, end=1)]


def doubtful(*leaves):
    return [
        (one.leaf.key, round(one.doubt, 2), round(one.worth, 2))
        for one in doubtful_leaves(result_of(rubric_of(*leaves)))
    ]


def test_leaves_are_ordered_by_doubt_times_effect():
    split = leaf("split", claim="x", sources=URL, quotes=QUOTE, votes=(True, False, True), weight=2)
    silent = leaf("silent", NOT_JUDGED, claim="x", sources=URL)
    assert doubtful(split, silent) == [("split", 0.67, 0.67), ("silent", 1.0, 0.33)]


def test_supported_claim_without_a_quote_is_doubtful():
    assert doubtful(leaf("a", claim="x", sources=URL)) == [("a", 0.6, 1.0)]


def test_penalty_without_a_quote_counts_in_the_strict_score():
    met = leaf("p", claim="x", sources=URL, weight=-1.0)
    [[reason]] = [one.reasons for one in doubtful_leaves(result_of(rubric_of(leaf("a"), met)))]
    assert reason == "it has no valid quote"


def test_orders_in_a_page_make_its_verdict_doubtful():
    assert doubtful(leaf("a", FAILED, claim="x", sources=URL, signals=["orders_in_page"], votes=(False,)))[0][1] == 0.9
