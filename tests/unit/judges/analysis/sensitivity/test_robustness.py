"""Who stays ahead when leaves, votes and weights are not quite as they are."""

from __future__ import annotations

import pytest

from judges.analysis.sensitivity.robustness import Robustness, ScoreDifference, robustness
from tests.fakes.judged import FAILED, NOT_JUDGED, PASSED, group, leaf
from tests.unit.judges.analysis.sensitivity.trees import tree


def asked(name: str, outcome=PASSED, *, split: bool = False, weight: float = 1.0, critical: bool = False):
    passed = outcome is PASSED
    votes = (passed, not passed, passed) if split else (passed, passed)
    return leaf(name, outcome, claim=f"claim {name}", votes=votes, weight=weight, critical=critical)


def held(a, b, **more) -> Robustness:
    found = robustness(a, b, **more)
    assert found is not None
    return found


def test_two_sides_without_a_shared_task_have_no_order():
    assert robustness({"x": [tree(asked("l"))]}, {"y": [tree(asked("l"))]}) is None


def test_a_lead_on_one_leaf_is_lost_without_that_leaf():
    a = {"t": [tree(asked("same"), asked("decides", FAILED))]}
    b = {"t": [tree(asked("same"), asked("decides"))]}
    found = held(a, b)
    assert (found.difference, found.difference.ahead) == (ScoreDifference(low=0.5, high=0.5), "b")
    tally = found.leave_one_leaf_out.tally
    assert (tally.tried, tally.holds, tally.lost, tally.open) == (2, 1, 1, 0)
    [turn] = found.leave_one_leaf_out.turns
    assert (turn.task_id, turn.leaf, turn.difference) == ("t", "decides", ScoreDifference(low=0.0, high=0.0))


def test_a_lead_of_the_first_side_is_held_against_the_same_changes():
    a = {"t": [tree(asked("same"), asked("decides"))]}
    b = {"t": [tree(asked("same"), asked("decides", FAILED))]}
    found = held(a, b)
    assert found.difference.ahead == "a"
    assert (found.leave_one_leaf_out.tally.holds, found.leave_one_leaf_out.tally.lost) == (1, 1)
    assert found.leave_one_leaf_out.turns[0].leaf == "decides"


def test_where_the_minority_wins_the_lead_may_turn():
    a = {"t": [tree(asked("one"), asked("two", FAILED))]}
    b = {"t": [tree(asked("one", split=True), asked("two", split=True))]}
    found = held(a, b)
    assert found.split_leaves == 2
    tally = found.minority_wins.tally
    assert (tally.tried, tally.holds, tally.lost) == (2, 0, 2)  # one leaf less is a tie
    assert found.minority_wins_everywhere == ScoreDifference(low=-0.5, high=-0.5)


def test_votes_drawn_again_turn_a_lead_as_often_as_two_of_three_votes_do():
    """b leads by one leaf with votes 2:1. Of three votes with a chance of 2/3 each, two or more say yes 20/27 times."""
    a = {"t": [tree(asked("x", FAILED), asked("y"))]}
    b = {"t": [tree(asked("x", split=True), asked("y"))]}
    tally = held(a, b, draws=4000).votes_redrawn.tally
    assert tally.holds / tally.tried == pytest.approx(20 / 27, abs=0.03)
    assert tally.holds + tally.lost == tally.tried


def test_votes_that_agreed_are_never_otherwise():
    a, b = {"t": [tree(asked("x", FAILED))]}, {"t": [tree(asked("x"))]}
    found = held(a, b, draws=50)
    assert (found.votes_redrawn.tally.holds, found.split_leaves, found.minority_wins.tally.tried) == (50, 0, 0)


def test_weights_decide_between_sides_that_are_right_on_different_leaves():
    """b has the leaf of weight 1.1, a that of 1: under random weights each leads about as often."""
    a = {"t": [tree(asked("heavy", FAILED, weight=1.1), asked("light"))]}
    b = {"t": [tree(asked("heavy", weight=1.1), asked("light", FAILED))]}
    found = held(a, b, draws=2000)
    assert found.difference.ahead == "b"
    assert found.equal_weights == ScoreDifference(low=0.0, high=0.0)
    tally = found.weights_redrawn.tally
    # Two log-uniform factors in [1/2, 2]: P(log2 f1 - log2 f2 > -log2 1.1) over a triangle on [-2, 2] = 0.5664.
    assert tally.holds / tally.tried == pytest.approx(0.5664, abs=0.03)
    assert found.weights_redrawn.low < 0 < found.weights_redrawn.high


def test_the_weights_of_both_sides_and_all_answers_are_changed_alike():
    """The same verdicts on both sides but for one: whatever the weights, b is never behind."""
    a = {"t": [tree(asked("x", weight=2), asked("y", FAILED), asked("z", FAILED))] * 2}
    b = {"t": [tree(asked("x", weight=2), asked("y"), asked("z", FAILED))] * 3}
    tally = held(a, b).weights_redrawn.tally
    assert tally.holds == tally.tried


def test_open_leaves_leave_a_lead_open():
    a = {"t": [tree(asked("x"), asked("y", FAILED))]}
    b = {"t": [tree(asked("x"), asked("y", NOT_JUDGED))]}
    found = held(a, b)
    assert (found.difference, found.difference.ahead) == (ScoreDifference(low=0.0, high=0.5), None)
    assert found.leave_one_leaf_out.tally.open == found.leave_one_leaf_out.tally.tried
    assert found.leave_one_leaf_out.turns == ()


def test_an_answer_without_a_result_may_be_anything():
    found = held({"t": [tree(asked("x"))]}, {"t": [None, tree(asked("x"))]})
    assert found.difference == ScoreDifference(low=-0.5, high=0.0)


def test_a_critical_leaf_left_out_frees_the_rest():
    a = {"t": [tree(asked("gate", FAILED, critical=True), group("rest", asked("x"), asked("y")))]}
    b = {"t": [tree(asked("gate", critical=True), group("rest", asked("x"), asked("y", FAILED)))]}
    found = held(a, b)
    assert found.difference.ahead == "b"
    [turn] = [turn for turn in found.leave_one_leaf_out.turns if turn.leaf == "gate"]
    assert turn.difference == ScoreDifference(low=-0.5, high=-0.5)


def test_the_same_seed_gives_the_same_and_another_something_else():
    a = {"t": [tree(asked("x", FAILED, weight=2), asked("y"), asked("z"))]}
    b = {"t": [tree(asked("x", weight=2), asked("y", FAILED, split=True), asked("z", split=True))]}
    assert held(a, b, seed=1) == held(a, b, seed=1)
    assert held(a, b, seed=1).weights_redrawn.low != held(a, b, seed=2).weights_redrawn.low
