"""Consistency of a verdict with its votes and quotes."""

from __future__ import annotations

import json
from typing import Any

from judges.analysis.recomputation import inconsistent_leaves, tree_of
from rubrics.verdict import Quote, QuoteOrigin
from tests.fakes.judged import FAILED, leaf, result_of, rubric_of

TEXT = "The museum opens at nine."
QUOTE = Quote(text="opens at nine", page_id="page_1", start=11, end=24)


def inconsistent_parts(*leaves: Any, text: str | None = TEXT) -> list[str]:
    result = json.loads(json.dumps(result_of(rubric_of(*leaves))))
    return [
        each.where
        for each in inconsistent_leaves(tree_of(result), lambda page_id: text if page_id == "page_1" else None)
    ]


def leaf_with_claim(outcome: Any = None, **more: Any) -> Any:
    return leaf(
        "a", *([] if outcome is None else [outcome]), claim="it opens at nine", sources=["https://x.example/"], **more
    )


def test_quote_at_its_position_is_consistent():
    assert inconsistent_parts(leaf_with_claim(quotes=[QUOTE])) == []


def test_quote_at_another_position_or_missing_is_reported():
    assert inconsistent_parts(leaf_with_claim(quotes=[QUOTE]), text="The museum opens at ten.") == [
        "quote of leaf a in page page_1"
    ]
    moved = Quote(text="opens at nine", page_id="page_1", start=12, end=25)
    assert inconsistent_parts(leaf_with_claim(quotes=[moved])) == ["quote of leaf a in page page_1"]
    backwards = Quote(text="opens at nine", page_id="page_1", start=-14, end=-1)
    assert inconsistent_parts(leaf_with_claim(quotes=[backwards])) == ["quote of leaf a in page page_1"]


def test_quotes_of_pictures_and_of_unavailable_pages_are_not_checked():
    picture = Quote(text="opens at nine", page_id="page_1", start=0, end=0, origin=QuoteOrigin.IMAGE)
    assert inconsistent_parts(leaf_with_claim(quotes=[picture])) == []
    assert inconsistent_parts(leaf_with_claim(quotes=[QUOTE]), text=None) == []


def test_outcome_that_contradicts_the_votes_is_reported():
    assert inconsistent_parts(leaf_with_claim(votes=[False, False])) == ["votes of leaf a"]
    assert inconsistent_parts(leaf_with_claim(FAILED, votes=[True, True])) == ["votes of leaf a"]
    assert inconsistent_parts(leaf_with_claim(FAILED, votes=[True, False, False])) == []
    assert inconsistent_parts(leaf_with_claim(FAILED, votes=[None, None])) == ["votes of leaf a"]
