"""Scores and rubric lint of a result, with overrides applied. Pure; the stored result is not changed.

An overridden leaf is known and counts as grounded. If an override opens a gate, the leaves behind it were never judged,
so the score has bounds. If it closes a gate, the leaves behind it count 0, as after a verdict of the judge.

For the lint, the rubric is rebuilt from the tree in the result's JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from judges.source_code import YAML_SUFFIX
from rubrics.lint import LintFinding, LintRule, lint
from rubrics.rubric import Rubric, RubricError
from rubrics.scoring import (
    Score,
    bounded_score,
    bounds,
    has_penalties,
    tree_score,
    unclipped_score,
)
from rubrics.tree import NodeKeys, RubricNode, Strategy, leaves_below, walk
from rubrics.tree_json import counts_strictly, is_penalty, outcome_of, shown_state
from rubrics.verdict import Claim, Outcome


class OverrideLike(Protocol):
    """Override of a leaf. ``outcome`` is None if it withdraws the override whose id is ``withdraws``."""

    @property
    def id(self) -> str: ...

    @property
    def leaf(self) -> str: ...

    @property
    def outcome(self) -> str | None: ...

    @property
    def withdraws(self) -> str | None: ...


OverrideT = TypeVar("OverrideT", bound=OverrideLike)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedNode:
    """Node of a stored tree. ``requires``: prerequisites of the node and its ancestors. ``data``: its JSON.

    ``in_penalty``: the node has a negative weight, or is below such a node.
    """

    key: str
    id: str
    critical: bool
    weight: float
    strategy: str
    children: tuple[JudgedNode, ...]
    requires: frozenset[str]
    in_penalty: bool
    outcome: Outcome
    data: Mapping[str, Any]

    @property
    def state(self) -> str:
        """State of a leaf as readers see it (``rubrics.tree_json.shown_state``)."""
        return shown_state(self.outcome.value, in_penalty=self.in_penalty)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverriddenScores:
    """Scores of a result with overrides applied. ``score_unclipped`` is None if the tree has no penalty."""

    score: Score
    score_strict: Score
    final_score: float
    score_unclipped: Score | None = None


def overrides_in_force(overrides: Iterable[OverrideT]) -> dict[str, OverrideT]:
    """Return the latest override of each leaf that was not withdrawn. ``overrides`` are in chronological order."""
    every = list(overrides)
    withdrawn = {one.withdraws for one in every}
    return {one.leaf: one for one in every if one.outcome is not None and one.id not in withdrawn}


def judged_tree(result: Mapping[str, Any]) -> JudgedNode | None:
    """Return the tree of a result: the first if a public script wrote several, None if there is none."""
    parts = result.get("eval_breakdown") or ()
    return _node(parts[0]["verification_tree"], frozenset(), NodeKeys(), in_penalty=False) if parts else None


def judged_leaves(result: Mapping[str, Any]) -> Mapping[str, JudgedNode]:
    """Return the leaves of a result, by key."""
    root = judged_tree(result)
    return {} if root is None else {leaf.key: leaf for leaf in leaves_below(root)}


def override_scores(root: JudgedNode, overrides: Mapping[str, bool], *, is_whole: bool = True) -> OverriddenScores:
    """Return the scores with overrides. ``overrides`` maps leaf keys to passed (True) or not (False).

    If the tree may lack parts, the scores are open, unless a critical leaf directly below the root cannot pass.

    Raises:
        InvalidNode: a weight is 0 or not finite.
    """
    intervals = _Intervals(root, overrides)
    strict = _Intervals(root, overrides, strict=True)
    score, strict_score = bounds(root, intervals), bounds(root, strict)
    final_score = tree_score(root, lambda leaf: intervals(leaf)[0])  # an unknown leaf counts 0
    is_penalized = any(leaf.data.get("penalized") for leaf in leaves_below(root))
    unclipped = bounds(root, intervals, unclipped_score) if is_penalized or has_penalties(root) else None
    gates = [child for child in root.children if child.critical and not child.children]
    if not is_whole and all(intervals(gate)[1] == 1.0 for gate in gates):
        score, unclipped = bounded_score(0.0, 1.0), None
        strict_score = score
    return OverriddenScores(score=score, score_strict=strict_score, final_score=final_score, score_unclipped=unclipped)


class _Intervals:
    """Interval of each leaf's score, with overrides applied."""

    def __init__(self, root: JudgedNode, overrides: Mapping[str, bool], *, strict: bool = False) -> None:
        self._overrides = overrides
        self._strict = strict
        # References to an id mean the first node with this id.
        self._by_id: dict[str, JudgedNode] = {}
        for node in walk(root):
            self._by_id.setdefault(node.id, node)

    def __call__(self, leaf: JudgedNode) -> tuple[float, float]:
        if leaf.key in self._overrides:
            points = float(self._overrides[leaf.key])
        elif self._unknown(leaf):
            return 0.0, 1.0
        elif leaf.data.get("penalized"):
            points = -1.0
        else:
            points = float(self._passed(leaf) and not self._gated_by_override(leaf))
        return points, points

    def _passed(self, leaf: JudgedNode) -> bool:
        counts = not self._strict or counts_strictly(leaf.data) or leaf.in_penalty
        return leaf.outcome is Outcome.PASSED and counts

    def _unknown(self, leaf: JudgedNode) -> bool:
        """Return whether the leaf was not judged, or was skipped behind a gate that an override opens."""
        return any(
            (step.key in self._overrides and self._overrides[step.key])
            or (step.key not in self._overrides and step.outcome is Outcome.NOT_JUDGED)
            for step in self._blockers(leaf)
        )

    def _blockers(self, leaf: JudgedNode) -> Iterator[JudgedNode]:
        """Yield the leaf and the chain of leaves that blocked it, up to the first override or verdict."""
        seen: set[str] = set()
        current: JudgedNode | None = leaf
        while current is not None and current.key not in seen:
            yield current
            seen.add(current.key)
            if current.key in self._overrides or current.outcome is not Outcome.SKIPPED:
                return
            current = self._by_id.get(str(current.data.get("blocked_by")))

    def _gated_by_override(self, leaf: JudgedNode) -> bool:
        """Return whether an override fails a prerequisite of the leaf.

        Gates between siblings are applied by ``rubrics.scoring``.
        """
        required_leaves = (self._by_id[id] for id in leaf.requires if id in self._by_id)
        return any(
            self._overrides.get(below.key) is below.in_penalty
            for node in required_leaves
            for below in leaves_below(node)
        )


def _node(data: Mapping[str, Any], above: frozenset[str], addresses: NodeKeys, *, in_penalty: bool) -> JudgedNode:
    in_penalty = in_penalty or is_penalty(data)
    requires = above | frozenset(map(str, data.get("requires") or ()))
    key = addresses.key(str(data["id"]))
    return JudgedNode(
        key=key,
        id=str(data["id"]),
        critical=bool(data.get("critical")),
        weight=float(data.get("weight") or 1.0),
        strategy=str(data.get("strategy") or Strategy.PARALLEL),
        children=tuple(
            _node(child, requires, addresses, in_penalty=in_penalty) for child in data.get("children") or ()
        ),
        requires=requires,
        in_penalty=in_penalty,
        outcome=outcome_of(data),
        data=data,
    )


def lint_of_result(result: Mapping[str, Any], *, file: str | None = None) -> list[LintFinding]:
    """Return the lint findings of a result's rubric, or none if the result has no readable tree.

    ``file`` is the name of the task file, if known. A task in YAML has groups with only critical children only if it
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
