"""Recomputation of all figures of a result from the verdicts of its leaves."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.recomputation import MAX_DEPTH, NotRecomputable, score_differences
from rubrics.rubric import Rubric
from rubrics.tree import statistics
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, SKIPPED, group, leaf, many_leaves, result_of, rubric_of


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


def test_large_tree_with_skipped_and_not_judged_leaves_has_no_differences():
    first = leaf("first", NOT_JUDGED, critical=True)
    behind = leaf("behind", SKIPPED, blocked_by="first")
    assert where(result_from_file(rubric_of(first, behind, *many_leaves(5, 20)))) == []


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


@pytest.mark.parametrize(("name", "value"), [("outcome", "passed"), ("weight", 7.0), ("critical", True)])
def test_changed_leaf_changes_the_score(name: str, value: Any):
    result = result_from_file(rubric_of(leaf("a"), leaf("b", FAILED), leaf("c")))
    changed = copy.deepcopy(result)
    tree(changed)["children"][1][name] = value
    assert "final_score" in where(changed)


def test_inner_node_that_contradicts_its_children_is_reported():
    result = result_from_file(rubric_of(group("part", leaf("a"), leaf("b", FAILED))))
    tree(result)["children"][0] |= {"score": 1.0, "status": "passed"}
    assert where(result) == ["node part"]


def test_ungrounded_leaf_counts_in_score_but_not_in_score_strict():
    result = result_from_file(rubric_of(leaf("a", claim="it is so", sources=["https://x.example/"]), leaf("b")))
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
def test_result_without_a_tree_cannot_be_recomputed(breakdown: Any, says: str):
    result = result_from_file(rubric_of(leaf("a"))) | {"eval_breakdown": breakdown}
    with pytest.raises(NotRecomputable, match=says):
        list(score_differences(result))


@pytest.mark.parametrize("weight", [0, -1, float("inf"), float("nan"), "heavy"])
def test_invalid_weights_cannot_be_recomputed(weight: Any):
    result = result_from_file(rubric_of(leaf("a"), leaf("b")))
    tree(result)["children"][0]["weight"] = weight
    with pytest.raises(NotRecomputable):
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
