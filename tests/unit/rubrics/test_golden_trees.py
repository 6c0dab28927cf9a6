"""Golden cases of the public toolkit that concern only trees, by their number in the contract."""

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


def test_01_step_after_a_failed_step_is_skipped_and_other_leaves_are_judged() -> None:
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


def test_02_gate_that_fails_later_keeps_verdicts_before_it() -> None:
    a, b = leaf("a"), leaf("b")
    group = parallel("p", a)
    root = parallel("root", group)
    verify(root, a, True)
    group.add(custom("k", False, critical=True), b)
    assert verify(root, b, True) is False
    tree = final(root)
    assert (tree["a"], tree["b"]) == ((1.0, "passed"), (0.0, "skipped"))
    assert tree["p"] == tree["root"] == (0.0, "failed")


def test_03_second_verdict_overwrites_the_first() -> None:
    a = leaf("a")
    root = parallel("root", a)
    verify(root, a, False)
    verify(root, a, True)
    assert final(root) == {"root": (1.0, "passed"), "a": (1.0, "passed")}


def test_03_passed_leaf_is_skipped_if_verified_again_after_a_failed_gate() -> None:
    a, k = leaf("a"), leaf("k", critical=True)
    root = parallel("root", a, k)
    verify(root, a, True)
    verify(root, k, False)
    verify(root, a, True)
    assert final(root) == {"root": (0.0, "failed"), "a": (0.0, "skipped"), "k": (0.0, "failed")}


def test_04_failed_gate_skips_its_siblings() -> None:
    a, b = leaf("a", critical=True), leaf("b", critical=True)
    root = parallel("root", custom("g", False, critical=True), parallel("p", a, b, critical=True))
    verify(root, a, True)
    verify(root, b, True)
    tree = final(root)
    assert [tree[name] for name in ("a", "b", "p")] == [(0.0, "skipped")] * 3
    assert tree["root"] == (0.0, "failed")


def test_05_leaf_created_as_skipped_blocks_its_siblings() -> None:
    a, b = leaf("a", critical=True), leaf("b", critical=True)
    a.status = Status.SKIPPED
    root = parallel("root", parallel("p", a, b, critical=True))
    verify(root, b, True)
    tree = final(root)
    assert [tree[name] for name in ("b", "p", "root")] == [(0.0, "skipped")] * 3


def test_06_steps_after_the_first_failed_step_count_zero() -> None:
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


def test_06_failed_critical_step_fails_the_sequence() -> None:
    results = [True, False, True]
    root = sequential("root", *(custom(f"c{n}", result, critical=True) for n, result in enumerate(results)))
    assert final(root)["root"] == (0.0, "failed")


def test_07_later_gate_blocks_an_earlier_step_and_is_finally_skipped() -> None:
    a = leaf("a")
    root = sequential("root", a, custom("k", False, critical=True))
    verify(root, a, True)
    assert final(root) == {"root": (0.0, "skipped"), "a": (0.0, "skipped"), "k": (0.0, "skipped")}


def test_08_failed_noncritical_leaf_below_an_earlier_step_blocks() -> None:
    step = leaf("l")
    root = sequential("root", parallel("p", custom("c1", True), custom("c2", False)), parallel("q", step))
    assert verify(root, step, True) is False
    tree = final(root)
    assert tree["l"] == (0.0, "skipped")
    assert (tree["p"], tree["q"], tree["root"]) == ((0.5, "partial"), (0.0, "skipped"), (0.25, "partial"))


def test_09_leaf_below_a_skipped_step_keeps_its_verdict() -> None:
    a, b, step = leaf("a"), leaf("b"), leaf("l")
    root = sequential("root", parallel("p", a, b), parallel("q", step))
    assert verify(root, step, True) is True
    verify(root, a, True)
    verify(root, b, False)
    tree = final(root)
    assert (tree["l"], tree["q"]) == ((1.0, "passed"), (0.0, "skipped"))
    assert (tree["p"], tree["root"]) == ((0.5, "partial"), (0.25, "partial"))


def test_10_group_without_children_is_an_unsettled_leaf() -> None:
    root = parallel("root", parallel("empty"), custom("c", True))
    assert final(root)["empty"] == (0.0, "initialized")
    assert final(root)["root"] == (0.5, "partial")
    counted = statistics(root)
    assert (counted.depth, counted.total_nodes, counted.leaf_nodes) == (1, 3, 2)


def test_11_empty_gate_does_not_block_but_zeroes_its_parent() -> None:
    step = leaf("l")
    root = parallel("root", parallel("empty", critical=True), step)
    assert verify(root, step, True) is True
    assert (final(root)["l"], final(root)["root"]) == ((1.0, "passed"), (0.0, "skipped"))


def test_11_empty_step_does_not_block_but_skips_later_steps() -> None:
    step = leaf("l")
    root = sequential("root", parallel("empty"), step)
    assert verify(root, step, True) is True
    assert (final(root)["l"], final(root)["root"]) == ((0.0, "skipped"), (0.0, "skipped"))


def test_12_unsettled_leaves_stay_initialized_below_a_skipped_group() -> None:
    root = parallel("root", parallel("p", leaf("a"), leaf("b")))
    assert final(root) == {
        "root": (0.0, "skipped"),
        "p": (0.0, "skipped"),
        "a": (0.0, "initialized"),
        "b": (0.0, "initialized"),
    }


def test_12_passed_step_after_an_unsettled_one_is_skipped() -> None:
    root = sequential("root", leaf("a"), custom("c", True))
    assert final(root) == {"root": (0.0, "skipped"), "a": (0.0, "initialized"), "c": (0.0, "skipped")}


def test_13_passed_gate_is_not_averaged() -> None:
    root = parallel("root", custom("k", True, critical=True), custom("c1", True), leaf("b"), custom("c2", False))
    assert final(root)["root"] == (THIRD, "partial")


def test_13_unsettled_leaf_stays_initialized_next_to_a_failed_one() -> None:
    root = parallel("root", custom("k", True, critical=True), custom("c", False), leaf("b"))
    assert (final(root)["root"], final(root)["b"]) == ((0.0, "failed"), (0.0, "initialized"))


def test_14_extra_prerequisite_is_evaluated_when_the_leaf_is_verified() -> None:
    a, b, step = leaf("a"), leaf("b"), leaf("l")
    group = parallel("p", a, b)
    root = parallel("root", group, step)
    verify(root, a, True)
    assert verify(root, step, True, extra=[group]) is True
    verify(root, b, False)
    assert verify(root, step, True, extra=[group]) is False
    tree = final(root)
    assert (tree["l"], tree["p"], tree["root"]) == ((0.0, "skipped"), (0.5, "partial"), (0.25, "partial"))


def test_15_earlier_verdict_of_a_leaf_blocks_it_through_its_own_group() -> None:
    a = leaf("a")
    group = parallel("p", a)
    root = parallel("root", group)
    verify(root, a, False)
    assert verify(root, a, True, extra=[group]) is False
    assert final(root)["a"] == (0.0, "skipped")


def test_15_leaf_without_an_earlier_verdict_is_judged() -> None:
    a = leaf("a")
    group = parallel("p", a)
    assert verify(parallel("root", group), a, True, extra=[group]) is True


def test_16_partial_gate_skips_its_parent_and_does_not_fail_it() -> None:
    step = leaf("l")
    gate = parallel("q", custom("c1", True), custom("c2", False))
    root = parallel("root", parallel("p", gate, custom("c3", True), step))
    gate.critical = True
    assert verify(root, step, True) is False
    tree = final(root)
    assert (tree["q"], tree["l"]) == ((0.5, "partial"), (0.0, "skipped"))
    assert tree["p"] == tree["root"] == (0.0, "skipped")


def test_18_siblings_checked_before_either_is_final_are_both_judged() -> None:
    gate, other = leaf("k", critical=True), leaf("l")
    root = parallel("root", gate, other)
    assert [blocker(root, node) for node in (gate, other)] == [None, None]
    verify(root, other, True)
    verify(root, gate, False)
    assert final(root) == {"root": (0.0, "failed"), "k": (0.0, "failed"), "l": (1.0, "passed")}


def test_18_gate_settled_earlier_blocks_both_siblings() -> None:
    gate, other, decided = leaf("k", critical=True), leaf("l"), custom("g", False, critical=True)
    root = parallel("root", gate, other, decided)
    assert [blocker(root, node) for node in (gate, other)] == [decided, decided]


def gated_pair() -> tuple[ScriptNode, ScriptNode, ScriptNode, ScriptNode]:
    gate, other, decided = leaf("k", critical=True), leaf("l"), custom("g", False, critical=True)
    return parallel("root", parallel("q", decided), parallel("p", gate, other)), gate, other, decided


def test_19_skipped_gate_skips_the_leaf_verified_next() -> None:
    root, gate, other, decided = gated_pair()
    verify(root, gate, True, extra=[decided])
    verify(root, other, True)
    tree = final(root)
    assert (tree["k"], tree["l"]) == ((0.0, "skipped"), (0.0, "skipped"))


def test_19_leaf_verified_before_the_gate_is_judged() -> None:
    root, gate, other, decided = gated_pair()
    verify(root, other, True)
    verify(root, gate, True, extra=[decided])
    tree = final(root)
    assert (tree["k"], tree["l"]) == ((0.0, "skipped"), (1.0, "passed"))
    assert (tree["p"], tree["root"]) == ((0.0, "skipped"), (0.0, "failed"))


def test_20_failed_leaf_below_a_gate_blocks_the_sibling_group() -> None:
    a, gate = leaf("a"), leaf("k", critical=True)
    root = parallel("root", parallel("u", a), parallel("p", gate, critical=True))
    verify(root, gate, False)
    verify(root, a, True)
    tree = final(root)
    assert (tree["a"], tree["u"]) == ((0.0, "skipped"), (0.0, "skipped"))
    assert tree["p"] == tree["root"] == (0.0, "failed")


def test_21_failed_noncritical_leaf_does_not_block_a_gate() -> None:
    a, gate = leaf("a"), leaf("b", critical=True)
    root = parallel("root", a, gate)
    verify(root, a, False)
    assert verify(root, gate, True) is True
    assert (final(root)["b"], final(root)["root"]) == ((1.0, "passed"), (0.0, "failed"))


def test_22_verdict_on_a_group_is_overwritten_by_its_score() -> None:
    group = parallel("p", leaf("l"))
    root = parallel("root", group)
    assert verify(root, group, True) is True
    assert group.status is Status.PASSED
    assert final(root)["p"] == (0.0, "skipped")


def test_22_root_does_not_depend_on_its_descendants() -> None:
    root = parallel("root", custom("c", False, critical=True))
    assert verify(root, root, True) is True


def test_23_unsettled_leaf_keeps_its_initial_score() -> None:
    a = leaf("l")
    a.score = 1.0
    assert final(parallel("root", a)) == {"root": (1.0, "passed"), "l": (1.0, "initialized")}


def test_23_leaf_created_as_passed_can_fail_verification() -> None:
    a = custom("l", True)
    root = parallel("root", a)
    verify(root, a, False)
    assert final(root)["l"] == (0.0, "failed")


def test_24_pure_scoring_follows_the_sequential_rule_and_changes_nothing() -> None:
    first, second = custom("c1", False), custom("c2", True)
    root = sequential("root", first, second)
    assert tree_score(root, lambda node: node.score) == 0.0
    assert final(root)["c2"] == (0.0, "skipped")
    assert (second.score, second.status) == (1.0, Status.PASSED)
