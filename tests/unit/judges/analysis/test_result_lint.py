"""Lint of the rubric in a result's JSON."""

from __future__ import annotations

from typing import Any

from judges.analysis.result_lint import finding_json, lint_of_result


def leaf(node_id: str, **facts: Any) -> dict[str, Any]:
    return {"id": node_id, "desc": node_id, "critical": False, "weight": 1.0, "strategy": "parallel",
            "status": "passed", "score": 1.0, "outcome": "passed", "children": [], **facts}  # fmt: skip


def result(*children: dict[str, Any]) -> dict[str, Any]:
    root = leaf("root") | {"children": list(children)}
    del root["outcome"]
    return {"task_id": "bridges", "eval_breakdown": [{"verification_tree": root}]}


def codes(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each.code.value, each.node_id) for each in lint_of_result(found)]


def test_a_claim_that_is_made_twice_is_found() -> None:
    same = {"claim": "The bridge is old", "sources": ["https://a.example/"]}

    assert codes(result(leaf("a", **same), leaf("b", **same))) == [("duplicate_text", "b")]


def test_claims_about_other_pages_or_values_are_not_found() -> None:
    a = leaf("a", claim="The bridge is old", sources=["https://a.example/"])
    b = leaf("b", claim="The bridge is old", sources=["https://b.example/"])

    assert codes(result(a, b, leaf("c", claim="The tower is old"))) == []


def test_a_leaf_decided_by_code_counts_as_a_check() -> None:
    assert codes(result(leaf("a", outcome="failed", score=0.0), leaf("b", claim="The bridge is old"))) == []


def test_a_result_without_a_tree_has_no_findings() -> None:
    assert lint_of_result({"task_id": "bridges"}) == []


def test_a_tree_with_the_same_id_twice_is_not_linted() -> None:
    assert lint_of_result(result(leaf("a"), leaf("a"))) == []


def test_a_finding_names_rule_node_and_fix() -> None:
    [found] = lint_of_result(result(leaf("a", weight=2.0)))

    assert finding_json(found) == {
        "code": "pointless_weight",
        "node_id": "a",
        "message": "weight 2 has no effect because every non-critical sibling has it, too; remove it",
    }
