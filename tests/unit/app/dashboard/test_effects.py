"""Effect of each child on the score of its parent."""

from __future__ import annotations

import pytest
from hypothesis import given

from app.dashboard.effects import EffectKind, Effects
from app.dashboard.outline import Node, outline
from app.dashboard.results import OpenLeaves
from rubrics.rubric import Rubric
from rubrics.scoring import Score, bounds
from rubrics.verdict import Outcome
from tests.fakes.judged import FAILED, NOT_JUDGED, SKIPPED, group, leaf, result_of, rubric_of
from tests.unit.rubrics.random_rubrics import QUICK, judged_rubrics


def outline_and_effects(*children, **more):
    drawn = outline(result_of(rubric_of(*children, **more)))
    return drawn, Effects(drawn)


def test_failed_gate_zeroes_its_siblings():
    _, found = outline_and_effects(leaf("gate", FAILED, critical=True), leaf("fine"))
    assert found["gate"].kind is EffectKind.GATE_SHUT
    assert found["gate"].worth == 1.0
    assert (found["fine"].kind, found["fine"].cause) == (EffectKind.GATED, "gate")
    assert found["fine"].text == "gate is required and not met: counts 0"


def test_leaf_behind_an_unjudged_one_can_still_count():
    _, found = outline_and_effects(
        group("gated", leaf("gate", NOT_JUDGED, critical=True), leaf("fine", SKIPPED, blocked_by="gated/gate")),
        group("steps", leaf("one", NOT_JUDGED), leaf("two", SKIPPED, blocked_by="steps/one"), sequential=True),
        group("late", leaf("one", FAILED), leaf("two", NOT_JUDGED), sequential=True),
    )
    assert found["gated/fine"].kind is found["steps/two"].kind is EffectKind.WAITING
    assert found["gated/fine"].text == "gate is required and not judged: counts 0 until it is"
    assert found["steps/two"].text == "after one, which was not judged: counts 0 until it is"
    assert (found["late/two"].kind, found["late/two"].text) == (
        EffectKind.TOO_LATE,
        "after one, which did not pass: counts 0",
    )


def test_penalty_subtracts_and_is_shown_as_one():
    drawn, found = outline_and_effects(leaf("a", weight=4), leaf("p", weight=-2), leaf("q", FAILED, weight=-1))
    assert drawn.root.score == 0.5
    assert (found["p"].kind, found["p"].text) == (EffectKind.SUBTRACTS, "penalty: subtracts 0.50 of 0.50")
    assert (found["p"].lost, found["q"].lost) == ((0.5, 0.5), (0.0, 0.0))
    assert [one.state for one in drawn.leaves] == ["passed", "applies", "avoided"]


def test_lost_points_add_up_to_what_the_score_lacks():
    drawn, found = outline_and_effects(
        group("x", leaf("a"), leaf("b", FAILED), weight=2),
        group("y", leaf("one", FAILED), leaf("two", SKIPPED, blocked_by="y/one"), leaf("three"), sequential=True),
        group("z", leaf("gate", FAILED, critical=True), leaf("fine")),
        leaf("c"),
    )
    lost = {key: found[key].lost for key in drawn.by_key}
    assert lost["x/b"] == pytest.approx((0.2, 0.2)) and lost["x/a"] == lost["c"] == (0.0, 0.0)
    assert lost["z/gate"] == lost["z"] and lost["z/fine"] == (0.0, 0.0)
    for parent, children in (("x", "ab"), ("y", ("one", "two", "three"))):
        assert sum(lost[f"{parent}/{child}"][0] for child in children) == pytest.approx(lost[parent][0])
    assert sum(lost[child.key][0] for child in drawn.root.children) == pytest.approx(1 - drawn.root.score)


@QUICK
@given(judged_rubrics())
def test_scores_of_open_leaves_are_those_of_the_whole_tree(rubric: Rubric):
    drawn = outline(result_of(rubric))

    def bounds_if(decided: Node, points: float) -> Score:
        def interval(leaf: Node) -> tuple[float, float]:
            known = points if leaf is decided else float(leaf.outcome == Outcome.PASSED)
            return (0.0, 1.0) if leaf.key in drawn.unknown and leaf is not decided else (known, known)

        return bounds(drawn.root, interval)

    for one in OpenLeaves(drawn, Effects(drawn)).with_scores():
        for found, points in ((one.if_failed, 0.0), (one.if_passed, 1.0)):
            whole = bounds_if(one.leaf, points)
            assert (found.low, found.high) == pytest.approx((whole.low, whole.high))
