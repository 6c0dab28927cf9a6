"""Rubric lint of a stored result."""

from __future__ import annotations

from typing import Any

from judges.analysis.overrides import finding_json, lint_of_result


def leaf(node_id: str, **facts: Any) -> dict[str, Any]:
    return {"id": node_id, "desc": node_id, "critical": False, "weight": 1.0, "strategy": "parallel",
            "status": "passed", "score": 1.0, "outcome": "passed", "children": [], **facts}  # fmt: skip


def result(*children: dict[str, Any]) -> dict[str, Any]:
    root = leaf("root") | {"children": list(children)}
    del root["outcome"]
    return {"task_id": "bridges", "eval_breakdown": [{"verification_tree": root}]}


def codes(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each.code.value, each.node_id) for each in lint_of_result(found)]


def test_duplicate_claim_is_reported() -> None:
    same = {"claim": "The bridge is old", "sources": ["https://a.example/"]}

    assert codes(result(leaf("a", **same), leaf("b", **same))) == [("duplicate_text", "b")]


def test_claims_with_different_sources_or_text_are_not_duplicates() -> None:
    a = leaf("a", claim="The bridge is old", sources=["https://a.example/"])
    b = leaf("b", claim="The bridge is old", sources=["https://b.example/"])

    assert codes(result(a, b, leaf("c", claim="The tower is old"))) == []


def test_leaf_decided_by_code_counts_as_a_check() -> None:
    assert codes(result(leaf("a", outcome="failed", score=0.0), leaf("b", claim="The bridge is old"))) == []


def test_result_without_a_tree_has_no_findings() -> None:
    assert lint_of_result({"task_id": "bridges"}) == []


def test_tree_with_duplicate_ids_is_not_linted() -> None:
    assert lint_of_result(result(leaf("a"), leaf("a"))) == []


def test_finding_has_rule_node_and_message() -> None:
    [found] = lint_of_result(result(leaf("a", weight=2.0)))

    assert finding_json(found) == {
        "code": "pointless_weight",
        "node_id": "a",
        "message": "weight 2 has no effect because every non-critical sibling has it, too; remove it",
    }


def test_all_or_nothing_groups_of_a_task_in_yaml_are_no_findings():
    tree = result(leaf("group", outcome=None, children=[leaf("a", critical=True), leaf("b", critical=True)]), leaf("c"))
    assert [each.code.value for each in lint_of_result(tree, file="bridges.py")] == ["only_critical"]
    assert lint_of_result(tree, file="bridges.yaml") == []
