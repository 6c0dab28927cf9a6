"""Rubric lint of a stored result."""

from __future__ import annotations

from typing import Any

from judges.analysis.overrides import lint_of_result


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
