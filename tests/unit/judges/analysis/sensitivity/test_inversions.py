"""Effect of one inverted verdict on the score, including gates."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from judges.analysis.overrides import judged_tree
from judges.analysis.sensitivity.inversions import MAX_LEAVES, invert_leaves
from rubrics.tree import leaves_below
from rubrics.verdict import Outcome
from tests.fakes.judged import FAILED, NOT_JUDGED, SKIPPED, group, leaf, result_of, rubric_of
from tests.unit.judges.analysis.sensitivity.trees import results

pytestmark = pytest.mark.slow


def changes(*children, sequential: bool = False) -> dict[tuple[str, str], tuple[float, float]]:
    found = invert_leaves(result_of(rubric_of(*children, sequential=sequential)))
    assert found is not None
    return {
        (inversion.key, inversion.to.value): (round(inversion.low_change, 6), round(inversion.high_change, 6))
        for inversion in found.inversions
    }


def test_leaf_changes_the_score_by_its_share():
    assert changes(leaf("a"), leaf("b", FAILED, weight=3)) == {
        ("b", "passed"): (0.75, 0.75),
        ("a", "failed"): (-0.25, -0.25),
    }


def test_failing_critical_leaf_zeroes_its_parent():
    assert changes(leaf("gate", critical=True), leaf("a"), leaf("b", FAILED))[("gate", "failed")] == (-0.5, -0.5)


def test_passing_critical_leaf_opens_the_score():
    found = changes(leaf("gate", FAILED, critical=True), leaf("a", SKIPPED, blocked_by="gate"), leaf("b"))
    assert found == {("gate", "passed"): (0.5, 1.0)}  # b passed; a was skipped, so its outcome is unknown


def test_flipping_one_of_two_failed_critical_leaves_changes_nothing():
    found = invert_leaves(
        result_of(
            rubric_of(
                leaf("g", FAILED, critical=True), leaf("h", FAILED, critical=True), leaf("a", SKIPPED, blocked_by="g")
            )
        )
    )
    assert found is not None
    assert (found.inversions, found.without_effect) == ((), 3)


def test_failing_step_zeroes_the_later_steps():
    found = changes(leaf("one"), leaf("two"), leaf("three"), sequential=True)
    assert found[("one", "failed")] == (-1.0, -1.0)
    assert found[("three", "failed")] == (pytest.approx(-1 / 3, abs=1e-6),) * 2


def test_not_judged_leaf_is_flipped_both_ways():
    found = changes(leaf("a"), leaf("b", NOT_JUDGED))
    # The score is 0.5 to 1: passing raises its lower bound, failing lowers its upper bound.
    assert found[("b", "passed")] == (0.0, 0.5)
    assert found[("b", "failed")] == (-0.5, 0.0)


def test_failing_prerequisite_also_zeroes_its_dependent_leaf():
    rubric = rubric_of(leaf("needed"), group("part", leaf("a"), leaf("b")))
    rubric.require(rubric.find("part/a"), "needed")
    found = invert_leaves(result_of(rubric))
    assert found is not None
    assert {inversion.key: round(inversion.high_change, 6) for inversion in found.inversions} == {
        "needed": -0.75,
        "part/a": -0.25,
        "part/b": -0.25,
    }


def test_flips_are_sorted_by_effect_and_include_votes():
    found = invert_leaves(
        result_of(
            rubric_of(leaf("small", claim="x", votes=(True, False, True)), leaf("big", FAILED, claim="y", weight=5))
        )
    )
    assert found is not None
    assert [(inversion.key, inversion.yes, inversion.no) for inversion in found.inversions] == [
        ("big", 2, 0),
        ("small", 2, 1),
    ]


@settings(max_examples=40, deadline=None)
@given(results())
def test_flipped_score_equals_that_of_the_changed_tree(result):
    """Compare each inversion with the score of the edited tree. These results have no skipped leaf."""
    found = invert_leaves(result)
    assert found is not None
    assert (found.score.low, found.score.high) == (result["score"]["low"], result["score"]["high"])
    for inversion in found.inversions[:5]:
        low, high = rescored(result, inversion.key, inversion.to)
        assert (inversion.score.low, inversion.score.high) == (pytest.approx(low), pytest.approx(high))
        assert inversion.largest_change > 0


def rescored(result, key: str, to: Outcome) -> tuple[float, float]:
    """Return the bounds with one leaf changed in the tree."""
    from rubrics.scoring import bounds

    root = judged_tree(result)
    assert root is not None
    points = {Outcome.PASSED: (1.0, 1.0), Outcome.FAILED: (0.0, 0.0), Outcome.NOT_JUDGED: (0.0, 1.0)}
    score = bounds(root, lambda each: points[to if each.key == key else each.outcome])
    return score.low, score.high


def test_huge_tree_is_limited_to_the_leaves_with_the_largest_effect():
    many = [leaf(f"n{nth}", weight=1.0) for nth in range(MAX_LEAVES)]
    found = invert_leaves(result_of(rubric_of(leaf("heavy", weight=500), *many)))
    assert found is not None
    assert found.left_out == 1
    assert found.inversions[0].key == "heavy"


def test_result_without_a_tree_has_no_flips():
    assert invert_leaves(result_of(rubric_of(leaf("a")), eval_breakdown=[])) is None


def test_result_of_the_public_toolkit_is_read_by_its_statuses():
    node = {"id": "a", "desc": "", "critical": False, "score": 1.0, "status": "passed", "children": []}
    root = {**node, "id": "root", "strategy": "parallel", "children": [node, {**node, "id": "b", "status": "failed"}]}
    found = invert_leaves({"final_score": 0.5, "eval_breakdown": [{"info": [], "verification_tree": root}]})
    assert found is not None
    assert [(inversion.key, inversion.high_change) for inversion in found.inversions] == [("a", -0.5), ("b", 0.5)]
    tree = judged_tree({"eval_breakdown": [{"verification_tree": root}]})
    assert tree is not None and len(list(leaves_below(tree))) == 2
