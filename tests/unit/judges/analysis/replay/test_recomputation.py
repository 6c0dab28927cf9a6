"""Recomputation of all figures of a result from the verdicts of its leaves."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.recomputation import MAX_DEPTH, NotRecomputable, inconsistent_leaves, score_differences, tree_of
from rubrics.rubric import Rubric
from rubrics.tree import statistics
from rubrics.verdict import Quote, QuoteOrigin
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, group, leaf, result_of, rubric_of


def result_from_file(rubric: Rubric, **changes: Any) -> dict[str, Any]:
    """Return a result as it is read from a file."""
    whole = result_of(rubric, tree_statistics=asdict(statistics(rubric.root)), **changes)
    read: dict[str, Any] = json.loads(json.dumps(whole))
    return read


def tree(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = result["eval_breakdown"][0]["verification_tree"]
    return found


def where(result: dict[str, Any]) -> list[str]:
    return [each.where for each in score_differences(result)]


OUTCOMES = st.sampled_from([PASSED, FAILED, NOT_JUDGED])


@given(st.lists(st.tuples(OUTCOMES, st.booleans(), st.floats(0.1, 10)), min_size=1, max_size=8), st.booleans())
def test_unchanged_result_has_no_differences(leaves, sequential: bool):
    nodes = [
        leaf(f"l{n}", outcome, critical=critical, weight=weight) for n, (outcome, critical, weight) in enumerate(leaves)
    ]
    result = result_from_file(rubric_of(group("all", *nodes, sequential=sequential)))
    assert list(score_differences(result)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("final_score", 0.99),
        ("status", "incomplete"),
        ("score", {"value": 1.0, "low": 1.0, "high": 1.0}),
        ("score_strict", None),
        ("tree_statistics", {"depth": 1, "total_nodes": 9, "leaf_nodes": 2}),
    ],
)
def test_changed_figure_is_reported_with_its_recomputed_value(name: str, value: Any):
    result = result_from_file(rubric_of(leaf("a"), leaf("b", FAILED)))
    [found] = score_differences({**result, name: value})
    assert found.where == name
    assert found.recorded == value
    assert found.recomputed == result[name] or name == "tree_statistics"


def test_inner_node_that_contradicts_its_children_is_reported():
    result = result_from_file(rubric_of(group("part", leaf("a"), leaf("b", FAILED))))
    tree(result)["children"][0] |= {"score": 1.0, "status": "passed"}
    assert where(result) == ["node part"]


@pytest.mark.parametrize(
    ("breakdown", "says"),
    [
        (None, "without a tree"),
        ([{}, {}], "2 trees"),
        ([{"verification_tree": {"id": "root"}}], "is malformed"),
    ],
)
def test_result_without_a_tree_cannot_be_recomputed(breakdown: Any, says: str):
    result = result_from_file(rubric_of(leaf("a"))) | {"eval_breakdown": breakdown}
    with pytest.raises(NotRecomputable, match=says):
        list(score_differences(result))


def test_excessively_deep_tree_cannot_be_recomputed():
    deep: dict[str, Any] = {"children": []}
    for _ in range(MAX_DEPTH * 5):
        deep = {"children": [deep]}
    with pytest.raises(NotRecomputable, match="more than 200 levels deep"):
        list(
            score_differences(
                result_from_file(rubric_of(leaf("a"))) | {"eval_breakdown": [{"verification_tree": deep}]}
            )
        )


def test_interrupted_public_script_has_certain_bounds_only_behind_a_failed_gate():
    public = result_from_file(rubric_of(leaf("gate", FAILED, critical=True), leaf("b")))
    for node in tree(public)["children"]:
        node |= {"low": node["score"], "high": node["score"]}
    public |= {"cut_short": "too late", "status": "incomplete"}
    assert where(public) == []
    tree(public)["children"][0] |= {"critical": False}
    assert "score" in where(public)


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
