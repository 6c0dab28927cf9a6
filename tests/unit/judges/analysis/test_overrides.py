"""Scores with overrides in place of the judge's verdicts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.overrides import JudgedNode, judged_tree, override_scores
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, SKIPPED, judged_fields, leaf, rubric_of


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


def test_override_of_a_penalty_moves_the_score_the_other_way():
    root = tree_of(judged_fields(rubric_of(leaf("a", weight=4), leaf("p", weight=-8), leaf("q", FAILED, weight=-1))))
    scores = {name: override_scores(root, {name: passed}) for name, passed in (("p", False), ("q", True), ("a", False))}
    assert {name: found.score.value for name, found in scores.items()} == {"p": 1.0, "q": 0.0, "a": 0.0}
    unclipped = {name: found.score_unclipped for name, found in scores.items()}
    assert {name: found and found.value for name, found in unclipped.items()} == {"p": 1.0, "q": -1.25, "a": -2.0}


def test_passed_gate_opens_the_score_of_its_skipped_leaves():
    leaves = leaf("gate", FAILED, critical=True), leaf("a", SKIPPED, blocked_by="gate"), leaf("b")
    assert score_of(*leaves, overrides={}) == 0.0
    assert score_of(*leaves, overrides={"gate": True}) == (0.5, 1.0)
    assert score_of(*leaves, overrides={"gate": True, "a": True}) == 1.0


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
