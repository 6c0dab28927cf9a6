"""What a score would be with people's word in place of the judge's."""

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


def score_of(*leaves, said, sequential=False, strict=False):
    root = tree_of(judged_fields(rubric_of(*leaves, sequential=sequential)))
    found = override_scores(root, said)
    score = found.score_strict if strict else found.score
    return score.value if score.value is not None else (score.low, score.high)


def test_a_persons_word_stands_in_place_of_the_judges():
    assert score_of(leaf("a"), leaf("b", FAILED), said={"b": True}) == 1.0
    assert score_of(leaf("a"), leaf("b", FAILED), said={"a": False}) == 0.0


def test_settling_what_nobody_found_out_closes_the_bounds():
    leaves = leaf("a"), leaf("b", NOT_JUDGED)
    assert score_of(*leaves, said={}) == (0.5, 1.0)
    assert score_of(*leaves, said={"b": False}) == 0.5


def test_opening_a_gate_leaves_open_what_nobody_looked_at_behind_it():
    leaves = leaf("gate", FAILED, critical=True), leaf("a", SKIPPED, blocked_by="gate"), leaf("b")
    assert score_of(*leaves, said={}) == 0.0
    assert score_of(*leaves, said={"gate": True}) == (0.5, 1.0)
    assert score_of(*leaves, said={"gate": True, "a": True}) == 1.0


def test_what_was_skipped_behind_a_skipped_leaf_is_open_as_well():
    first = leaf("first", FAILED)
    second, third = leaf("second", SKIPPED, blocked_by="first"), leaf("third", SKIPPED, blocked_by="second")
    assert score_of(first, second, third, said={"first": True}, sequential=True) == (1 / 3, 1.0)
    assert score_of(first, second, third, said={"second": True}, sequential=True) == 0.0


def test_failing_what_others_wait_for_settles_them():
    gate, behind = leaf("gate", NOT_JUDGED, critical=True), leaf("a", SKIPPED, blocked_by="gate")
    assert score_of(gate, behind, said={}) == (0.0, 1.0)
    assert score_of(gate, behind, said={"gate": False}) == 0.0


def test_what_a_leaf_requires_takes_it_down_when_a_person_fails_that():
    rubric = rubric_of(leaf("needed"), group("part", leaf("a"), leaf("b")), leaf("c"))
    rubric.require(rubric.find("part"), "needed")
    root = tree_of(judged_fields(rubric))
    assert override_scores(root, {}).score.value == 1.0
    assert override_scores(root, {"needed": False}).score.value == 1 / 3


def test_what_a_person_settled_counts_in_the_strict_score():
    leaves = leaf("a", claim="x", sources=["https://a.example/"]), leaf("b", claim="y", quotes=QUOTE)
    assert score_of(*leaves, said={}, strict=True) == 0.5
    assert score_of(*leaves, said={"a": True}, strict=True) == 1.0


def test_leaves_with_one_id_have_keys_of_their_own():
    node = {"desc": "", "critical": False, "strategy": "parallel", "weight": 1.0, "score": 0.0}
    twins = [{**node, "id": "same", "status": "passed"}, {**node, "id": "same", "status": "failed"}]
    result = {"eval_breakdown": [{"verification_tree": {**node, "id": "root", "status": "partial", "children": twins}}]}
    assert list(judged_leaves(result)) == ["same", "same~2"]
    root = tree_of(result)
    assert override_scores(root, {"same~2": True}).score == Score(value=1.0, low=1.0, high=1.0)


def test_a_result_without_a_tree_has_no_leaves():
    assert judged_leaves({"eval_breakdown": []}) == {}


OUTCOMES = st.sampled_from([PASSED, FAILED, NOT_JUDGED])
LEAVES = st.lists(st.tuples(OUTCOMES, st.booleans(), st.integers(1, 4)), min_size=1, max_size=6)


@given(LEAVES, st.booleans(), st.data())
def test_agreeing_with_the_judge_changes_no_score(drawn, sequential, data):
    leaves = [leaf(f"n{n}", out, critical=gate, weight=w) for n, (out, gate, w) in enumerate(drawn)]
    fields = judged_fields(rubric_of(*leaves, sequential=sequential))
    judged = {f"n{n}": out is PASSED for n, (out, _, _) in enumerate(drawn) if out is not NOT_JUDGED}
    said = {key: judged[key] for key in data.draw(st.sets(st.sampled_from(sorted(judged))))} if judged else {}
    found = override_scores(tree_of(fields), said)
    assert {"value": found.score.value, "low": found.score.low, "high": found.score.high} == fields["score"]
    assert found.final_score == fields["final_score"]
