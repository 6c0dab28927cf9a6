"""Every figure of a result is worked out again from the verdicts on its leaves, and what is otherwise is named."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.replay.recomputation import score_differences
from judges.analysis.replay.tree import MAX_DEPTH, NotRecomputable
from rubrics.rubric import Rubric
from rubrics.tree import statistics
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, SKIPPED, group, leaf, many_leaves, result_of, rubric_of


def told(rubric: Rubric, **changes: Any) -> dict[str, Any]:
    """A result as it is read from a file."""
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
def test_what_a_judge_wrote_is_what_comes_out(leaves, sequential: bool):
    nodes = [
        leaf(f"l{n}", outcome, critical=critical, weight=weight) for n, (outcome, critical, weight) in enumerate(leaves)
    ]
    result = told(rubric_of(group("all", *nodes, sequential=sequential)))
    assert list(score_differences(result)) == []


def test_a_large_tree_with_skipped_and_unknown_leaves():
    first = leaf("first", NOT_JUDGED, critical=True)
    behind = leaf("behind", SKIPPED, blocked_by="first")
    assert where(told(rubric_of(first, behind, *many_leaves(5, 20)))) == []


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
def test_a_figure_that_was_changed_is_named_with_what_it_should_be(name: str, value: Any):
    result = told(rubric_of(leaf("a"), leaf("b", FAILED)))
    [found] = score_differences({**result, name: value})
    assert found.where == name
    assert found.recorded == value
    assert found.recomputed == result[name] or name == "tree_statistics"


@pytest.mark.parametrize(("name", "value"), [("outcome", "passed"), ("weight", 7.0), ("critical", True)])
def test_a_leaf_that_was_changed_changes_the_figures(name: str, value: Any):
    result = told(rubric_of(leaf("a"), leaf("b", FAILED), leaf("c")))
    changed = copy.deepcopy(result)
    tree(changed)["children"][1][name] = value
    assert "final_score" in where(changed)


def test_an_inner_node_that_says_more_than_its_children():
    result = told(rubric_of(group("part", leaf("a"), leaf("b", FAILED))))
    tree(result)["children"][0] |= {"score": 1.0, "status": "passed"}
    assert where(result) == ["node part"]


def test_a_passed_leaf_without_ground_counts_only_where_that_does_not_matter():
    result = told(rubric_of(leaf("a", claim="it is so", sources=["https://x.example/"]), leaf("b")))
    assert result["score"]["value"] == 1.0
    assert result["score_strict"]["value"] == 0.5
    assert where(result) == []


@pytest.mark.parametrize(
    ("breakdown", "says"),
    [
        (None, "without a tree"),
        ([], "without a tree"),
        ([{}, {}], "2 trees"),
        ([{"verification_tree": {"id": "root"}}], "is malformed"),
        ([{"verification_tree": None}], "is malformed"),
    ],
)
def test_a_result_without_a_tree_cannot_be_recomputed(breakdown: Any, says: str):
    result = told(rubric_of(leaf("a"))) | {"eval_breakdown": breakdown}
    with pytest.raises(NotRecomputable, match=says):
        list(score_differences(result))


@pytest.mark.parametrize("weight", [0, -1, float("inf"), float("nan"), "heavy"])
def test_weights_that_no_score_can_be_made_of(weight: Any):
    result = told(rubric_of(leaf("a"), leaf("b")))
    tree(result)["children"][0]["weight"] = weight
    with pytest.raises(NotRecomputable):
        list(score_differences(result))


def test_a_tree_made_to_exhaust_the_stack():
    deep: dict[str, Any] = {"children": []}
    for _ in range(MAX_DEPTH * 5):
        deep = {"children": [deep]}
    with pytest.raises(NotRecomputable, match="more than 200 levels deep"):
        list(score_differences(told(rubric_of(leaf("a"))) | {"eval_breakdown": [{"verification_tree": deep}]}))


def test_the_tree_of_a_script_that_was_cut_short_is_certain_only_behind_a_shut_gate():
    public = told(rubric_of(leaf("gate", FAILED, critical=True), leaf("b")))
    for node in tree(public)["children"]:
        node |= {"low": node["score"], "high": node["score"]}
    public |= {"cut_short": "too late", "status": "incomplete"}
    assert where(public) == []
    tree(public)["children"][0] |= {"critical": False}
    assert "score" in where(public)
