from __future__ import annotations

import pytest

from rubrics.gating import first_blocker, prerequisites
from rubrics.tree import Status, find_path
from tests.unit.rubrics.public_script import ScriptNode, custom, leaf, parallel, sequential


def prerequisite_names(root: ScriptNode, node: ScriptNode, *extra: ScriptNode) -> list[str]:
    return [each.node.id for each in prerequisites(find_path(root, node), extra)]


def waits_for(root: ScriptNode, node: ScriptNode, *extra: ScriptNode) -> list[str]:
    return [each.node.id for each in prerequisites(find_path(root, node), extra) if each.settled_first]


def test_prerequisites_are_ordered_extra_first_then_upward_gates_before_steps() -> None:
    node, far = leaf("node"), leaf("far")
    inner = sequential("inner", leaf("step"), leaf("gate", critical=True), node, leaf("later", critical=True))
    root = sequential("root", leaf("top_step"), leaf("top_gate", critical=True), inner, leaf("after"), far)
    assert prerequisite_names(root, node, far) == ["far", "gate", "later", "step", "top_gate", "top_step"]


def test_noncritical_sibling_under_a_parallel_parent_is_not_a_prerequisite() -> None:
    node = leaf("node")
    assert prerequisite_names(parallel("root", leaf("a"), node, leaf("b")), node) == []


def test_root_and_detached_node_have_only_extra_prerequisites() -> None:
    root, stray = parallel("root", leaf("a", critical=True)), leaf("stray")
    assert prerequisite_names(root, root) == []
    assert prerequisite_names(root, stray, root) == ["root"]


def test_nodes_with_the_same_id_are_distinguished() -> None:
    node, twin = leaf("same"), leaf("same", critical=True)
    assert [each.node for each in prerequisites(find_path(parallel("root", twin, node), node))] == [twin]


def test_first_blocker_is_the_leftmost_settled_leaf_of_the_first_prerequisite() -> None:
    node, bad, worse = leaf("node"), custom("bad", False), custom("worse", False)
    group = parallel("group", custom("good", True), leaf("open"), bad, worse, critical=True)
    root = parallel("root", group, node)
    needed = prerequisites(find_path(root, node), [])
    assert first_blocker(needed, lambda each: each.status, lambda each: False) is bad


def test_passed_and_unsettled_leaves_do_not_block() -> None:
    node = leaf("node")
    gates = [custom("good", True, critical=True), leaf("open", critical=True), parallel("empty", critical=True)]
    root = parallel("root", *gates, node)
    assert first_blocker(prerequisites(find_path(root, node), []), lambda each: each.status, lambda each: False) is None


def test_noncritical_leaf_waits_for_its_gates_and_a_gate_waits_for_nothing() -> None:
    gate, other, plain = leaf("gate", critical=True), leaf("other", critical=True), leaf("plain")
    root = parallel("root", plain, gate, other)
    assert waits_for(root, plain) == ["gate", "other"]
    assert waits_for(root, gate) == []


def test_step_waits_for_earlier_steps_only() -> None:
    first, second, third = leaf("first"), leaf("second", critical=True), leaf("third")
    root = sequential("root", first, second, third)
    assert waits_for(root, first) == []
    assert waits_for(root, second) == ["first"]
    assert waits_for(root, third) == ["second", "first"]


def test_leaf_waits_for_prerequisites_of_its_groups_and_its_extra_ones() -> None:
    node, gate, far = leaf("node"), leaf("gate", critical=True), leaf("far")
    root = sequential("root", leaf("before"), parallel("group", node, gate), far)
    assert waits_for(root, node, far) == ["far", "gate", "before"]


def blocker_id(root: ScriptNode, node: ScriptNode, *, by_code: set[str]) -> str | None:
    found = first_blocker(
        prerequisites(find_path(root, node), []),
        state=lambda each: each.status,
        by_code=lambda each: each.id in by_code,
        is_unknown=lambda each: False,
    )
    return None if found is None else found.id


def test_gate_is_blocked_by_a_critical_sibling_only_if_code_decided_it() -> None:
    gate, sibling = leaf("gate", critical=True), custom("sibling", False, critical=True)
    root = parallel("root", gate, sibling)
    assert blocker_id(root, gate, by_code=set()) is None
    assert blocker_id(root, gate, by_code={"sibling"}) == "sibling"


def test_noncritical_leaf_is_blocked_by_any_failed_gate() -> None:
    plain, gate = leaf("plain"), custom("gate", False, critical=True)
    assert blocker_id(parallel("root", plain, gate), plain, by_code=set()) == "gate"


def test_later_gate_in_a_sequence_blocks_only_if_code_decided_it() -> None:
    step, gate = leaf("step"), custom("gate", False, critical=True)
    root = sequential("root", step, gate)
    assert blocker_id(root, step, by_code=set()) is None
    assert blocker_id(root, step, by_code={"gate"}) == "gate"


def test_skipped_leaf_blocks_like_a_failed_one() -> None:
    step, skipped = leaf("step"), leaf("skipped")
    skipped.status = Status.SKIPPED
    assert blocker_id(sequential("root", skipped, step), step, by_code=set()) == "skipped"


@pytest.mark.parametrize(("applies", "blocked"), [(True, True), (False, False)])
def test_step_is_blocked_by_a_penalty_that_applies(applies: bool, blocked: bool) -> None:
    mistake = custom("mistake", applies)
    mistake.weight = -2.0
    step = leaf("step")
    root = sequential("root", parallel("first", custom("fact", True), mistake), step)
    found = first_blocker(prerequisites([root, step]), state=lambda node: node.status, is_unknown=lambda node: False)
    assert found is (mistake if blocked else None)


def test_unknown_penalty_blocks_and_a_closed_gate_does_not_skip_one() -> None:
    mistake, step = leaf("mistake"), leaf("step")
    mistake.weight = -2.0
    gate = custom("gate", False, critical=True)
    first = parallel("first", gate, mistake)
    root = sequential("root", first, step)
    assert prerequisites([root, first, mistake]) == []
    first.children.remove(gate)
    found = first_blocker(prerequisites([root, step]), state=lambda node: node.status, is_unknown=lambda node: True)
    assert found is mistake
