"""The golden cases of the public toolkit that concern trees alone, by their number in the contract."""

from __future__ import annotations

import pytest

from rubrics.node import Status
from rubrics.scoring import tree_score
from rubrics.tree import statistics
from tests.unit.rubrics.public_script import (
    ScriptNode,
    blocker,
    custom,
    final,
    leaf,
    parallel,
    sequential,
    verify,
)

THIRD = pytest.approx(1 / 3)


def test_01_a_step_after_a_failed_step_is_skipped_and_the_rest_goes_on() -> None:
    a, b, d, x = (leaf(name) for name in "abdx")
    root = parallel("root", sequential("s", a, b, d), x)
    verify(root, a, True)
    verify(root, b, False)
    assert verify(root, d, True) is False
    verify(root, x, True)
    assert final(root) == {
        "root": (pytest.approx(2 / 3), "partial"),
        "s": (THIRD, "partial"),
        "a": (1.0, "passed"),
        "b": (0.0, "failed"),
        "d": (0.0, "skipped"),
        "x": (1.0, "passed"),
    }


def test_02_a_gate_that_fails_later_leaves_what_was_judged_before_it() -> None:
    a, b = leaf("a"), leaf("b")
    group = parallel("p", a)
    root = parallel("root", group)
    verify(root, a, True)
    group.add(custom("k", False, critical=True), b)
    assert verify(root, b, True) is False
    tree = final(root)
    assert (tree["a"], tree["b"]) == ((1.0, "passed"), (0.0, "skipped"))
    assert tree["p"] == tree["root"] == (0.0, "failed")


def test_03_a_second_verdict_overwrites_the_first() -> None:
    a = leaf("a")
    root = parallel("root", a)
    verify(root, a, False)
    verify(root, a, True)
    assert final(root) == {"root": (1.0, "passed"), "a": (1.0, "passed")}


def test_03_a_failed_gate_turns_a_passed_leaf_into_a_skipped_one_when_it_is_asked_again() -> None:
    a, k = leaf("a"), leaf("k", critical=True)
    root = parallel("root", a, k)
    verify(root, a, True)
    verify(root, k, False)
    verify(root, a, True)
    assert final(root) == {"root": (0.0, "failed"), "a": (0.0, "skipped"), "k": (0.0, "failed")}


def test_04_a_failed_gate_skips_everything_beside_it() -> None:
    a, b = leaf("a", critical=True), leaf("b", critical=True)
    root = parallel("root", custom("g", False, critical=True), parallel("p", a, b, critical=True))
    verify(root, a, True)
    verify(root, b, True)
    tree = final(root)
    assert [tree[name] for name in ("a", "b", "p")] == [(0.0, "skipped")] * 3
    assert tree["root"] == (0.0, "failed")


def test_05_a_leaf_created_skipped_blocks_its_siblings() -> None:
    a, b = leaf("a", critical=True), leaf("b", critical=True)
    a.status = Status.SKIPPED
    root = parallel("root", parallel("p", a, b, critical=True))
    verify(root, b, True)
    tree = final(root)
    assert [tree[name] for name in ("b", "p", "root")] == [(0.0, "skipped")] * 3


def test_06_everything_after_the_first_missed_step_counts_nothing() -> None:
    step = leaf("l")
    root = sequential("root", custom("c1", True), custom("c2", False), custom("c3", True), step)
    assert verify(root, step, True) is False
    tree = final(root)
    assert [tree[name] for name in ("c1", "c2", "c3", "l")] == [
        (1.0, "passed"),
        (0.0, "failed"),
        (0.0, "skipped"),
        (0.0, "skipped"),
    ]
    assert tree["root"] == (0.25, "partial")


def test_06_a_missed_critical_step_fails_the_sequence() -> None:
    results = [True, False, True]
    root = sequential("root", *(custom(f"c{n}", result, critical=True) for n, result in enumerate(results)))
    assert final(root)["root"] == (0.0, "failed")


def test_07_a_later_gate_blocks_an_earlier_step_and_is_skipped_itself_in_the_end() -> None:
    a = leaf("a")
    root = sequential("root", a, custom("k", False, critical=True))
    verify(root, a, True)
    assert final(root) == {"root": (0.0, "skipped"), "a": (0.0, "skipped"), "k": (0.0, "skipped")}


def test_08_a_failed_leaf_below_an_earlier_step_blocks_although_it_is_not_critical() -> None:
    step = leaf("l")
    root = sequential("root", parallel("p", custom("c1", True), custom("c2", False)), parallel("q", step))
    assert verify(root, step, True) is False
    tree = final(root)
    assert tree["l"] == (0.0, "skipped")
    assert (tree["p"], tree["q"], tree["root"]) == ((0.5, "partial"), (0.0, "skipped"), (0.25, "partial"))


def test_09_a_leaf_below_a_skipped_step_keeps_its_own_verdict() -> None:
    a, b, step = leaf("a"), leaf("b"), leaf("l")
    root = sequential("root", parallel("p", a, b), parallel("q", step))
    assert verify(root, step, True) is True
    verify(root, a, True)
    verify(root, b, False)
    tree = final(root)
    assert (tree["l"], tree["q"]) == ((1.0, "passed"), (0.0, "skipped"))
    assert (tree["p"], tree["root"]) == ((0.5, "partial"), (0.25, "partial"))


def test_10_a_group_without_children_is_a_leaf_nobody_settled() -> None:
    root = parallel("root", parallel("empty"), custom("c", True))
    assert final(root)["empty"] == (0.0, "initialized")
    assert final(root)["root"] == (0.5, "partial")
    counted = statistics(root)
    assert (counted.depth, counted.total_nodes, counted.leaf_nodes) == (1, 3, 2)


def test_11_an_empty_gate_does_not_block_and_yet_zeroes_its_parent() -> None:
    step = leaf("l")
    root = parallel("root", parallel("empty", critical=True), step)
    assert verify(root, step, True) is True
    assert (final(root)["l"], final(root)["root"]) == ((1.0, "passed"), (0.0, "skipped"))


def test_11_an_empty_step_does_not_block_and_yet_skips_what_follows() -> None:
    step = leaf("l")
    root = sequential("root", parallel("empty"), step)
    assert verify(root, step, True) is True
    assert (final(root)["l"], final(root)["root"]) == ((0.0, "skipped"), (0.0, "skipped"))


def test_12_leaves_nobody_settled_stay_initialized_below_a_skipped_group() -> None:
    root = parallel("root", parallel("p", leaf("a"), leaf("b")))
    assert final(root) == {
        "root": (0.0, "skipped"),
        "p": (0.0, "skipped"),
        "a": (0.0, "initialized"),
        "b": (0.0, "initialized"),
    }


def test_12_a_passed_step_after_an_unsettled_one_is_skipped() -> None:
    root = sequential("root", leaf("a"), custom("c", True))
    assert final(root) == {"root": (0.0, "skipped"), "a": (0.0, "initialized"), "c": (0.0, "skipped")}


def test_13_a_passed_gate_is_not_averaged() -> None:
    root = parallel("root", custom("k", True, critical=True), custom("c1", True), leaf("b"), custom("c2", False))
    assert final(root)["root"] == (THIRD, "partial")


def test_13_an_unsettled_leaf_stays_initialized_beside_a_failed_one() -> None:
    root = parallel("root", custom("k", True, critical=True), custom("c", False), leaf("b"))
    assert (final(root)["root"], final(root)["b"]) == ((0.0, "failed"), (0.0, "initialized"))


def test_14_an_extra_prerequisite_counts_what_is_decided_at_that_moment() -> None:
    a, b, step = leaf("a"), leaf("b"), leaf("l")
    group = parallel("p", a, b)
    root = parallel("root", group, step)
    verify(root, a, True)
    assert verify(root, step, True, extra=[group]) is True
    verify(root, b, False)
    assert verify(root, step, True, extra=[group]) is False
    tree = final(root)
    assert (tree["l"], tree["p"], tree["root"]) == ((0.0, "skipped"), (0.5, "partial"), (0.25, "partial"))


def test_15_the_old_verdict_of_a_leaf_counts_through_a_group_it_lies_in() -> None:
    a = leaf("a")
    group = parallel("p", a)
    root = parallel("root", group)
    verify(root, a, False)
    assert verify(root, a, True, extra=[group]) is False
    assert final(root)["a"] == (0.0, "skipped")


def test_15_without_an_old_verdict_the_leaf_is_judged() -> None:
    a = leaf("a")
    group = parallel("p", a)
    assert verify(parallel("root", group), a, True, extra=[group]) is True


def test_16_a_partial_gate_skips_its_parent_and_does_not_fail_it() -> None:
    step = leaf("l")
    gate = parallel("q", custom("c1", True), custom("c2", False))
    root = parallel("root", parallel("p", gate, custom("c3", True), step))
    gate.critical = True
    assert verify(root, step, True) is False
    tree = final(root)
    assert (tree["q"], tree["l"]) == ((0.5, "partial"), (0.0, "skipped"))
    assert tree["p"] == tree["root"] == (0.0, "skipped")


def test_18_siblings_that_look_before_either_is_settled_are_both_judged() -> None:
    gate, other = leaf("k", critical=True), leaf("l")
    root = parallel("root", gate, other)
    assert [blocker(root, node) for node in (gate, other)] == [None, None]
    verify(root, other, True)
    verify(root, gate, False)
    assert final(root) == {"root": (0.0, "failed"), "k": (0.0, "failed"), "l": (1.0, "passed")}


def test_18_a_gate_decided_before_blocks_both() -> None:
    gate, other, decided = leaf("k", critical=True), leaf("l"), custom("g", False, critical=True)
    root = parallel("root", gate, other, decided)
    assert [blocker(root, node) for node in (gate, other)] == [decided, decided]


def gated_pair() -> tuple[ScriptNode, ScriptNode, ScriptNode, ScriptNode]:
    gate, other, decided = leaf("k", critical=True), leaf("l"), custom("g", False, critical=True)
    return parallel("root", parallel("q", decided), parallel("p", gate, other)), gate, other, decided


def test_19_a_skipped_gate_skips_the_next_one_that_looks() -> None:
    root, gate, other, decided = gated_pair()
    verify(root, gate, True, extra=[decided])
    verify(root, other, True)
    tree = final(root)
    assert (tree["k"], tree["l"]) == ((0.0, "skipped"), (0.0, "skipped"))


def test_19_a_leaf_that_looks_first_is_judged() -> None:
    root, gate, other, decided = gated_pair()
    verify(root, other, True)
    verify(root, gate, True, extra=[decided])
    tree = final(root)
    assert (tree["k"], tree["l"]) == ((0.0, "skipped"), (1.0, "passed"))
    assert (tree["p"], tree["root"]) == ((0.0, "skipped"), (0.0, "failed"))


def test_20_a_failed_leaf_below_a_gate_blocks_the_neighbouring_group() -> None:
    a, gate = leaf("a"), leaf("k", critical=True)
    root = parallel("root", parallel("u", a), parallel("p", gate, critical=True))
    verify(root, gate, False)
    verify(root, a, True)
    tree = final(root)
    assert (tree["a"], tree["u"]) == ((0.0, "skipped"), (0.0, "skipped"))
    assert tree["p"] == tree["root"] == (0.0, "failed")


def test_21_a_failed_leaf_that_is_not_critical_does_not_block_a_gate() -> None:
    a, gate = leaf("a"), leaf("b", critical=True)
    root = parallel("root", a, gate)
    verify(root, a, False)
    assert verify(root, gate, True) is True
    assert (final(root)["b"], final(root)["root"]) == ((1.0, "passed"), (0.0, "failed"))


def test_22_a_verdict_on_a_group_is_overwritten_when_it_is_scored() -> None:
    group = parallel("p", leaf("l"))
    root = parallel("root", group)
    assert verify(root, group, True) is True
    assert group.status is Status.PASSED
    assert final(root)["p"] == (0.0, "skipped")


def test_22_the_root_depends_on_nothing_below_it() -> None:
    root = parallel("root", custom("c", False, critical=True))
    assert verify(root, root, True) is True


def test_23_an_unsettled_leaf_counts_the_score_it_was_created_with() -> None:
    a = leaf("l")
    a.score = 1.0
    assert final(parallel("root", a)) == {"root": (1.0, "passed"), "l": (1.0, "initialized")}


def test_23_a_leaf_created_passed_can_be_verified_false() -> None:
    a = custom("l", True)
    root = parallel("root", a)
    verify(root, a, False)
    assert final(root)["l"] == (0.0, "failed")


def test_24_pure_scoring_follows_the_sequential_rule_and_writes_nothing() -> None:
    first, second = custom("c1", False), custom("c2", True)
    root = sequential("root", first, second)
    assert tree_score(root, lambda node: node.score) == 0.0
    assert final(root)["c2"] == (0.0, "skipped")
    assert (second.score, second.status) == (1.0, Status.PASSED)
