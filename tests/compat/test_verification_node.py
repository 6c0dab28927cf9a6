"""Public node: fields, validation on creation, and scoring."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from mind2web2 import AggregationStrategy, VerificationNode
from tests.compat.scripted import ScriptedClient, initialized_evaluator, tree


def node(id: str, **fields: Any) -> VerificationNode:
    return VerificationNode(id=id, desc=id, **fields)


def test_public_fields_come_first_and_in_order():
    assert list(VerificationNode.model_fields) == [
        "id", "desc", "critical", "score", "status", "strategy", "children", "weight", "evidence",
    ]  # fmt: skip
    assert list(node("a").model_dump())[:7] == ["id", "desc", "critical", "score", "status", "strategy", "children"]


def test_defaults():
    made = node("a")
    assert (made.critical, made.score, made.status, made.strategy, made.children, made.weight) == (
        False, 0.0, "initialized", AggregationStrategy.PARALLEL, [], 1.0,
    )  # fmt: skip


def test_strategy_accepts_and_serializes_to_a_string():
    made = node("a", strategy="sequential")
    assert made.strategy is AggregationStrategy.SEQUENTIAL
    assert made.strategy == "sequential"
    assert '"strategy":"sequential"' in made.model_dump_json()


@pytest.mark.parametrize(
    ("status", "score", "fits"),
    [
        ("passed", 1.0, True),
        ("passed", 0.5, False),
        ("passed", 0.0, False),
        ("partial", 0.5, True),
        ("partial", 0.0, False),
        ("partial", 1.0, False),
        ("failed", 0.0, True),
        ("failed", 0.1, False),
        ("skipped", 0.0, True),
        ("skipped", 1.0, False),
        ("initialized", 0.0, True),
        ("initialized", 0.3, True),
        ("initialized", 1.0, True),
    ],
)
def test_status_must_match_score_on_creation(status: str, score: float, fits: bool):
    if fits:
        assert node("a", status=status, score=score).score == score
    else:
        with pytest.raises(ValidationError):
            node("a", status=status, score=score)


@pytest.mark.parametrize("fields", [{"score": -0.1}, {"score": 1.1}, {"status": "done"}, {"weight": 0.0}, {"id": 7}])
def test_invalid_values_are_rejected(fields: dict[str, Any]):
    with pytest.raises(ValueError, match="validation error"):
        VerificationNode(**{"id": "a", "desc": "a", **fields})


def test_assignment_is_not_validated():
    made = node("a")
    made.status = "passed"
    made.critical = True
    assert (made.status, made.score) == ("passed", 0.0)


async def test_leaf_with_an_unknown_assigned_status_counts_its_score_and_does_not_block():
    e = initialized_evaluator(ScriptedClient())
    gate, leaf = e.add_leaf("gate", "gate", critical=True), e.add_leaf("leaf", "leaf")
    gate.status, gate.score = "done", 1.0  # type: ignore[assignment]
    assert await e.verify("it holds", leaf)
    assert tree(e.get_summary()) == {"root": ("passed", 1.0), "gate": ("initialized", 1.0), "leaf": ("passed", 1.0)}


def test_claim_is_an_alias_of_desc_and_not_a_field():
    made = node("a")
    made.claim = "the sky is blue"
    assert made.desc == made.claim == "the sky is blue"
    assert "claim" not in made.model_dump()


def test_given_children_are_not_copied():
    child = node("c")
    assert node("p", children=[child]).children[0] is child


def test_children_are_not_shared_between_nodes():
    first, second = node("a"), node("b")
    first.add_node(node("c"))
    assert second.children == []


@pytest.mark.parametrize("child", [None, "leaf", {"id": "a", "desc": "a"}])
def test_only_nodes_can_be_added(child: Any):
    with pytest.raises(AssertionError):
        node("p").add_node(child)


def test_node_cannot_be_added_to_itself():
    made = node("p")
    with pytest.raises(AssertionError):
        made.add_node(made)


def test_critical_parent_rejects_a_non_critical_child():
    parent = node("p", critical=True)
    with pytest.raises(ValueError, match="must be critical too"):
        parent.add_node(node("a"))
    parent.add_node(node("b", critical=True))
    assert [child.id for child in parent.children] == ["b"]


def test_assigning_critical_later_is_not_validated():
    parent, child = node("p"), node("a")
    parent.add_node(child)
    parent.critical = True
    assert parent.compute_score() == 0.0


def test_scoring_without_mutate_writes_nothing():
    parent = node("p", children=[node("a", score=1.0, status="passed"), node("b")])
    assert parent.compute_score() == 0.5
    assert (parent.score, parent.status) == (0.0, "initialized")


def test_scoring_with_mutate_writes_all_descendants():
    inner = node("i", children=[node("a", score=1.0, status="passed"), node("b")])
    outer = node("o", children=[inner])
    assert outer.compute_score(mutate=True) == 0.5
    assert (outer.status, inner.score, inner.status) == ("partial", 0.5, "partial")


def test_aggregated_score_stays_until_it_is_computed_again():
    leaf = node("a")
    parent = node("p", children=[leaf])
    assert parent.aggregated_score == 0.0
    leaf.score, leaf.status = 1.0, "passed"
    assert parent.aggregated_score == 0.0
    assert parent.compute_score() == 1.0
    assert parent.aggregated_score == 0.0
    parent.compute_score(mutate=True)
    assert parent.aggregated_score == 1.0


def test_zero_score_is_failed_only_with_a_failed_direct_child():
    skipped = node("p", children=[node("q", children=[node("a", status="failed")])])
    skipped.compute_score(mutate=True)
    assert (skipped.children[0].status, skipped.status) == ("failed", "failed")
    deep = node("p", children=[node("q", critical=True, children=[node("a", score=1.0, status="passed"), node("b")])])
    deep.compute_score(mutate=True)
    assert (deep.children[0].status, deep.status) == ("partial", "skipped")


def test_decision_is_kept_when_scoring_zeroes_a_step():
    steps = [node("a", status="failed"), node("b", score=1.0, status="passed")]
    parent = node("p", strategy="sequential", children=steps)
    parent.compute_score(mutate=True)
    assert (steps[1].score, steps[1].status) == (0.0, "skipped")
    assert steps[1].decision == (1.0, "passed")
    steps[1].decide(0.0, "skipped")
    assert steps[1].decision == (0.0, "skipped")


def test_node_in_two_places_counts_in_both():
    shared = node("x", score=1.0, status="passed")
    root = node("r", children=[node("p", children=[shared]), node("q", children=[shared, node("y")])])
    assert root.compute_score(mutate=True) == 0.75
    assert [each.id for each in root.walk()] == ["r", "p", "q", "x", "y"]


def test_cyclic_tree_raises_recursion_error():
    root = node("r", children=[node("p")])
    root.children[0].children.append(root)
    with pytest.raises(RecursionError):
        root.compute_score(mutate=True)
    assert [each.id for each in root.walk()] == ["r", "p"]
