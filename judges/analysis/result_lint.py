"""Rubric lint of results: rebuilds the rubric from the tree in a result's JSON and runs ``rubrics.lint``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judges.analysis.overrides import JudgedNode, judged_tree
from judges.source_code import YAML_SUFFIX
from rubrics.lint import LintFinding, LintRule, lint
from rubrics.node import RubricNode, Strategy
from rubrics.rubric import Rubric, RubricError
from rubrics.verdict import Claim, Outcome


def lint_of_result(result: Mapping[str, Any], *, file: str | None = None) -> list[LintFinding]:
    """Return the lint findings of a result's rubric, or none if the result has no readable tree.

    ``file`` is the name of the judge file, if known. A task in YAML has groups with only critical children only if it
    says so (``all_or_nothing``), so these are no findings.
    """
    tree = judged_tree(result)
    if tree is None:
        return []
    rubric = Rubric(str(result.get("task_id") or "task"), _text(tree, "desc"), Strategy(tree.strategy))
    try:
        _add_children(rubric, rubric.root, tree)
    except RubricError:  # public scripts may build trees that a native rubric rejects
        return []
    is_explicit = file is not None and file.endswith(YAML_SUFFIX)
    return [each for each in lint(rubric) if not (is_explicit and each.code is LintRule.ONLY_CRITICAL)]


def finding_json(finding: LintFinding) -> dict[str, str]:
    """Return a finding as JSON: ``code``, ``node_id`` and ``message``."""
    return {"code": finding.code.value, "node_id": finding.node_id, "message": finding.message}


def _add_children(rubric: Rubric, parent: RubricNode, tree: JudgedNode) -> None:
    for child in tree.children:
        claim = child.data.get("claim")
        sources = child.data.get("sources")
        node = RubricNode(
            id=child.id,
            desc=_text(child, "desc"),
            critical=child.critical,
            weight=child.weight,
            strategy=Strategy(child.strategy),
            claim=None
            if claim is None or child.children
            else Claim(
                text=str(claim),
                sources=None if sources is None else tuple(map(str, sources)),
                instruction=child.data.get("instruction"),
            ),
            check=_check(child),
        )
        rubric.add(parent, node)
        _add_children(rubric, node, child)


def _check(node: JudgedNode) -> bool | None:
    """Return a leaf's check, which in trees of public scripts is the outcome of a leaf without a claim."""
    if node.children or node.data.get("claim") is not None:
        return None
    if node.data.get("check") is not None:
        return bool(node.data["check"])
    return node.outcome is Outcome.PASSED if node.outcome is not Outcome.UNDECIDED else None


def _text(node: JudgedNode, name: str) -> str:
    return str(node.data.get(name) or "")
