"""Vectorized scores of many variants equal those of ``rubrics.scoring``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.analysis.overrides import JudgedNode, judged_tree
from judges.analysis.sensitivity.variants import ScoredTree, Variants, score_variants
from rubrics.scoring import bounds, tree_score
from rubrics.tree import leaves_below, walk
from tests.fakes.judged import FAILED, SKIPPED, leaf
from tests.unit.judges.analysis.sensitivity.trees import results, tree

pytestmark = pytest.mark.slow

KNOWN = {"passed": (1.0, 1.0), "failed": (0.0, 0.0), "not_judged": (0.0, 1.0)}


def tree_of(result) -> JudgedNode:
    found = judged_tree(result)
    assert found is not None
    return found


@settings(max_examples=40, deadline=None)
@given(results(), st.data())
def test_variant_scores_equal_those_of_the_rubric(result, data):
    root = tree_of(result)
    leaves = [each.key for each in leaves_below(root)]
    rows = data.draw(
        st.lists(
            st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=len(leaves), max_size=len(leaves)),
            min_size=1,
            max_size=4,
        )
    )
    factors = {
        node.key: np.array(
            data.draw(st.lists(st.sampled_from([0.5, 1.0, 1.7]), min_size=len(rows), max_size=len(rows)))
        )
        for node in walk(root)
    }
    points = {key: np.array([row[nth] for row in rows]) for nth, key in enumerate(leaves)}
    found, there = score_variants(root, Variants(count=len(rows), points=points, factors=factors))
    assert there is None
    for nth, row in enumerate(rows):
        weighed = reweighted(root, {key: float(each[nth]) for key, each in factors.items()})
        assert found[nth] == pytest.approx(score_of(weighed, dict(zip(leaves, row, strict=True))))


def score_of(root: JudgedNode, points: dict[str, float]) -> float:
    return tree_score(root, lambda each: points[each.key])


def reweighted(node: JudgedNode, factors: dict[str, float]) -> JudgedNode:
    children = tuple(reweighted(child, factors) for child in node.children)
    return replace(node, weight=node.weight * factors[node.key], children=children)


@settings(max_examples=40, deadline=None)
@given(results())
def test_score_without_a_leaf_equals_that_of_the_pruned_tree(result):
    root = tree_of(result)
    keys = [each.key for each in leaves_below(root)]
    low, high = ScoredTree(root).without_leaf(keys)
    for nth, key in enumerate(keys):
        rest = pruned(root, key)
        if rest is None:
            assert (low[nth], high[nth]) == (0.0, 1.0)
            continue
        expected = bounds(rest, lambda each: KNOWN[each.outcome.value])
        assert (low[nth], high[nth]) == (pytest.approx(expected.low), pytest.approx(expected.high))


def pruned(node: JudgedNode, key: str) -> JudgedNode | None:
    """Return the tree without one leaf and without groups that became empty."""
    if not node.children:
        return None if node.key == key else node
    children = tuple(each for child in node.children if (each := pruned(child, key)) is not None)
    return replace(node, children=children) if children else None


@settings(max_examples=40, deadline=None)
@given(results())
def test_unchanged_tree_has_its_recorded_score(result):
    low, high = ScoredTree(tree_of(result)).judged([{}])
    assert (low[0], high[0]) == (pytest.approx(result["score"]["low"]), pytest.approx(result["score"]["high"]))


def test_removed_gate_opens_the_score_of_the_leaves_behind_it():
    root = tree(leaf("gate", FAILED, critical=True), leaf("behind", SKIPPED, blocked_by="gate"), leaf("beside"))
    low, high = ScoredTree(root).without_leaf(["gate", "behind", "no such leaf"])
    assert (low.tolist(), high.tolist()) == ([0.5, 0.0, 0.0], [1.0, 0.0, 0.0])


def test_failed_leaf_with_a_tiny_weight_lowers_the_score():
    root = tree(leaf("all", weight=1e12), leaf("tiny", FAILED, weight=1e-6))
    low, _ = ScoredTree(root).judged([{}, {"tiny": True}])
    assert low[0] < 1.0 == low[1]


def test_weights_whose_sum_overflows_are_scored():
    root = tree(leaf("a", weight=1e308), leaf("b", FAILED, weight=1e308))
    low, _ = ScoredTree(root).judged([{}])
    assert low[0] == 0.5
