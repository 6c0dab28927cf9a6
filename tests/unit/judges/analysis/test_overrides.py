"""Scores with overrides in place of the judge's verdicts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.overrides import JudgedNode, judged_leaves, judged_tree, override_scores
from rubrics.scoring import Score
from rubrics.verdict import Quote
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, SKIPPED, group, judged_fields, leaf, rubric_of

QUOTE = [Quote(text="x", page_id="p", start=0, end=1)]


def tree_of(result) -> JudgedNode:
    root = judged_tree(result)
    assert root is not None
    return root


def score_of(*leaves, overrides, sequential=False, strict=False):
    root = tree_of(judged_fields(rubric_of(*leaves, sequential=sequential)))
    found = override_scores(root, overrides)
    score = found.score_strict if strict else found.score
    return score.value if score.value is not None else (score.low, score.high)


def test_override_replaces_the_verdict():
    assert score_of(leaf("a"), leaf("b", FAILED), overrides={"b": True}) == 1.0
    assert score_of(leaf("a"), leaf("b", FAILED), overrides={"a": False}) == 0.0


def test_override_of_a_not_judged_leaf_closes_the_bounds():
    leaves = leaf("a"), leaf("b", NOT_JUDGED)
    assert score_of(*leaves, overrides={}) == (0.5, 1.0)
    assert score_of(*leaves, overrides={"b": False}) == 0.5


def test_passed_gate_opens_the_score_of_its_skipped_leaves():
    leaves = leaf("gate", FAILED, critical=True), leaf("a", SKIPPED, blocked_by="gate"), leaf("b")
    assert score_of(*leaves, overrides={}) == 0.0
    assert score_of(*leaves, overrides={"gate": True}) == (0.5, 1.0)
    assert score_of(*leaves, overrides={"gate": True, "a": True}) == 1.0


def test_leaf_skipped_behind_a_skipped_leaf_is_open_too():
    first = leaf("first", FAILED)
    second, third = leaf("second", SKIPPED, blocked_by="first"), leaf("third", SKIPPED, blocked_by="second")
    assert score_of(first, second, third, overrides={"first": True}, sequential=True) == (1 / 3, 1.0)
    assert score_of(first, second, third, overrides={"second": True}, sequential=True) == 0.0


def test_failed_gate_closes_the_bounds():
    gate, behind = leaf("gate", NOT_JUDGED, critical=True), leaf("a", SKIPPED, blocked_by="gate")
    assert score_of(gate, behind, overrides={}) == (0.0, 1.0)
    assert score_of(gate, behind, overrides={"gate": False}) == 0.0


def test_failed_prerequisite_zeroes_the_dependent_group():
    rubric = rubric_of(leaf("needed"), group("part", leaf("a"), leaf("b")), leaf("c"))
    rubric.require(rubric.find("part"), "needed")
    root = tree_of(judged_fields(rubric))
    assert override_scores(root, {}).score.value == 1.0
    assert override_scores(root, {"needed": False}).score.value == 1 / 3


def test_override_counts_in_the_strict_score():
    leaves = leaf("a", claim="x", sources=["https://a.example/"]), leaf("b", claim="y", quotes=QUOTE)
    assert score_of(*leaves, overrides={}, strict=True) == 0.5
    assert score_of(*leaves, overrides={"a": True}, strict=True) == 1.0


def test_leaves_with_equal_ids_have_different_keys():
    node = {"desc": "", "critical": False, "strategy": "parallel", "weight": 1.0, "score": 0.0}
    twins = [{**node, "id": "same", "status": "passed"}, {**node, "id": "same", "status": "failed"}]
    result = {"eval_breakdown": [{"verification_tree": {**node, "id": "root", "status": "partial", "children": twins}}]}
    assert list(judged_leaves(result)) == ["same", "same~2"]
    root = tree_of(result)
    assert override_scores(root, {"same~2": True}).score == Score(value=1.0, low=1.0, high=1.0)


def test_result_without_a_tree_has_no_leaves():
    assert judged_leaves({"eval_breakdown": []}) == {}


OUTCOMES = st.sampled_from([PASSED, FAILED, NOT_JUDGED])
LEAVES = st.lists(st.tuples(OUTCOMES, st.booleans(), st.integers(1, 4)), min_size=1, max_size=6)


@given(LEAVES, st.booleans(), st.data())
def test_overrides_that_agree_with_the_judge_change_no_score(drawn, sequential, data):
    leaves = [leaf(f"n{n}", out, critical=gate, weight=w) for n, (out, gate, w) in enumerate(drawn)]
    fields = judged_fields(rubric_of(*leaves, sequential=sequential))
    judged = {f"n{n}": out is PASSED for n, (out, _, _) in enumerate(drawn) if out is not NOT_JUDGED}
    overrides = {key: judged[key] for key in data.draw(st.sets(st.sampled_from(sorted(judged))))} if judged else {}
    found = override_scores(tree_of(fields), overrides)
    assert {"value": found.score.value, "low": found.score.low, "high": found.score.high} == fields["score"]
    assert found.final_score == fields["final_score"]
