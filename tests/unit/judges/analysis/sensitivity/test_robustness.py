"""Robustness of a lead to changes of leaves, votes and weights."""

from __future__ import annotations

import pytest

from judges.analysis.sensitivity.robustness import Robustness, ScoreDifference, robustness
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, group, leaf
from tests.unit.judges.analysis.sensitivity.trees import tree


def asked(name: str, outcome=PASSED, *, split: bool = False, weight: float = 1.0, critical: bool = False):
    passed = outcome is PASSED
    votes = (passed, not passed, passed) if split else (passed, passed)
    return leaf(name, outcome, claim=f"claim {name}", votes=votes, weight=weight, critical=critical)


def measured(a, b, **more) -> Robustness:
    found = robustness(a, b, **more)
    assert found is not None
    return found


def test_sides_without_a_shared_task_have_no_robustness():
    assert robustness({"x": [tree(asked("l"))]}, {"y": [tree(asked("l"))]}) is None


def test_lead_that_depends_on_one_leaf_is_lost_without_it():
    a = {"t": [tree(asked("same"), asked("decides", FAILED))]}
    b = {"t": [tree(asked("same"), asked("decides"))]}
    found = measured(a, b)
    assert (found.difference, found.difference.ahead) == (ScoreDifference(low=0.5, high=0.5), "b")
    tally = found.leave_one_leaf_out.tally
    assert (tally.tried, tally.holds, tally.lost, tally.open) == (2, 1, 1, 0)
    [turn] = found.leave_one_leaf_out.turns
    assert (turn.task_id, turn.leaf, turn.difference) == ("t", "decides", ScoreDifference(low=0.0, high=0.0))


def test_lead_of_the_first_side_is_tested_alike():
    a = {"t": [tree(asked("same"), asked("decides"))]}
    b = {"t": [tree(asked("same"), asked("decides", FAILED))]}
    found = measured(a, b)
    assert found.difference.ahead == "a"
    assert (found.leave_one_leaf_out.tally.holds, found.leave_one_leaf_out.tally.lost) == (1, 1)
    assert found.leave_one_leaf_out.turns[0].leaf == "decides"


def test_minority_votes_can_reverse_the_lead():
    a = {"t": [tree(asked("one"), asked("two", FAILED))]}
    b = {"t": [tree(asked("one", split=True), asked("two", split=True))]}
    found = measured(a, b)
    assert found.split_leaves == 2
    tally = found.minority_wins.tally
    assert (tally.tried, tally.holds, tally.lost) == (2, 0, 2)  # with one leaf less, the sides are tied
    assert found.minority_wins_everywhere == ScoreDifference(low=-0.5, high=-0.5)


def test_redrawn_votes_lose_the_lead_with_the_binomial_probability():
    """b leads by one leaf with votes 2:1. Of three votes with probability 2/3, two or more are yes with 20/27."""
    a = {"t": [tree(asked("x", FAILED), asked("y"))]}
    b = {"t": [tree(asked("x", split=True), asked("y"))]}
    tally = measured(a, b, draws=4000).votes_redrawn.tally
    assert tally.holds / tally.tried == pytest.approx(20 / 27, abs=0.03)
    assert tally.holds + tally.lost == tally.tried


def test_unanimous_votes_are_never_redrawn_differently():
    a, b = {"t": [tree(asked("x", FAILED))]}, {"t": [tree(asked("x"))]}
    found = measured(a, b, draws=50)
    assert (found.votes_redrawn.tally.holds, found.split_leaves, found.minority_wins.tally.tried) == (50, 0, 0)


def test_weights_decide_between_sides_that_pass_different_leaves():
    """b passed the leaf of weight 1.1, a that of weight 1: with random weights each leads about half the time."""
    a = {"t": [tree(asked("heavy", FAILED, weight=1.1), asked("light"))]}
    b = {"t": [tree(asked("heavy", weight=1.1), asked("light", FAILED))]}
    found = measured(a, b, draws=2000)
    assert found.difference.ahead == "b"
    assert found.equal_weights == ScoreDifference(low=0.0, high=0.0)
    tally = found.weights_redrawn.tally
    # Two log-uniform factors in [1/2, 2]: P(log2 f1 - log2 f2 > -log2 1.1) over a triangle on [-2, 2] = 0.5664.
    assert tally.holds / tally.tried == pytest.approx(0.5664, abs=0.03)
    assert found.weights_redrawn.low < 0 < found.weights_redrawn.high


def test_weights_of_both_sides_and_all_answers_change_together():
    """The verdicts differ in one leaf only, so b is never behind, whatever the weights."""
    a = {"t": [tree(asked("x", weight=2), asked("y", FAILED), asked("z", FAILED))] * 2}
    b = {"t": [tree(asked("x", weight=2), asked("y"), asked("z", FAILED))] * 3}
    tally = measured(a, b).weights_redrawn.tally
    assert tally.holds == tally.tried


def test_not_judged_leaves_leave_the_lead_open():
    a = {"t": [tree(asked("x"), asked("y", FAILED))]}
    b = {"t": [tree(asked("x"), asked("y", NOT_JUDGED))]}
    found = measured(a, b)
    assert (found.difference, found.difference.ahead) == (ScoreDifference(low=0.0, high=0.5), None)
    assert found.leave_one_leaf_out.tally.open == found.leave_one_leaf_out.tally.tried
    assert found.leave_one_leaf_out.turns == ()


def test_answer_without_a_result_scores_from_0_to_1():
    found = measured({"t": [tree(asked("x"))]}, {"t": [None, tree(asked("x"))]})
    assert found.difference == ScoreDifference(low=-0.5, high=0.0)


def test_removing_a_failed_critical_leaf_reverses_the_lead():
    a = {"t": [tree(asked("gate", FAILED, critical=True), group("rest", asked("x"), asked("y")))]}
    b = {"t": [tree(asked("gate", critical=True), group("rest", asked("x"), asked("y", FAILED)))]}
    found = measured(a, b)
    assert found.difference.ahead == "b"
    [turn] = [turn for turn in found.leave_one_leaf_out.turns if turn.leaf == "gate"]
    assert turn.difference == ScoreDifference(low=-0.5, high=-0.5)


def test_equal_seeds_give_equal_figures_and_other_seeds_differ():
    a = {"t": [tree(asked("x", FAILED, weight=2), asked("y"), asked("z"))]}
    b = {"t": [tree(asked("x", weight=2), asked("y", FAILED, split=True), asked("z", split=True))]}
    assert measured(a, b, seed=1) == measured(a, b, seed=1)
    assert measured(a, b, seed=1).weights_redrawn.low != measured(a, b, seed=2).weights_redrawn.low
