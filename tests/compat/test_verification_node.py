"""Public node: fields, validation on creation, and scoring."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from mind2web2 import AggregationStrategy, VerificationNode


def node(id: str, **fields: Any) -> VerificationNode:
    return VerificationNode(id=id, desc=id, **fields)


def test_public_fields_come_first_and_in_order():
    assert list(VerificationNode.model_fields) == [
        "id", "desc", "critical", "score", "status", "strategy", "children", "weight", "evidence",
    ]  # fmt: skip
    assert list(node("a").model_dump())[:7] == ["id", "desc", "critical", "score", "status", "strategy", "children"]


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
        ("partial", 0.5, True),
        ("partial", 1.0, False),
        ("skipped", 1.0, False),
        ("initialized", 1.0, True),
    ],
)
def test_status_must_match_score_on_creation(status: str, score: float, fits: bool):
    if fits:
        assert node("a", status=status, score=score).score == score
    else:
        with pytest.raises(ValidationError):
            node("a", status=status, score=score)


def test_critical_parent_rejects_a_non_critical_child():
    parent = node("p", critical=True)
    with pytest.raises(ValueError, match="must be critical too"):
        parent.add_node(node("a"))
    parent.add_node(node("b", critical=True))
    assert [child.id for child in parent.children] == ["b"]


def test_scoring_weighs_children_and_writes_only_with_mutate():
    inner = node("i", children=[node("a", score=1.0, status="passed", weight=3.0), node("b")])
    outer = node("o", children=[inner])
    assert (outer.compute_score(), outer.status) == (0.75, "initialized")
    assert outer.compute_score(mutate=True) == 0.75
    assert (outer.status, inner.score, inner.status) == ("partial", 0.75, "partial")


def test_zero_score_is_failed_only_with_a_failed_direct_child():
    skipped = node("p", children=[node("q", children=[node("a", status="failed")])])
    skipped.compute_score(mutate=True)
    assert (skipped.children[0].status, skipped.status) == ("failed", "failed")
    deep = node("p", children=[node("q", critical=True, children=[node("a", score=1.0, status="passed"), node("b")])])
    deep.compute_score(mutate=True)
    assert (deep.children[0].status, deep.status) == ("partial", "skipped")
