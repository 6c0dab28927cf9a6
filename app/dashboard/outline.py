"""Tree of a result as values for templates.

Public scripts may give two nodes the same id. Each node has a unique ``key``: its id if that is unique and valid in a
URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rubrics.addresses import NodeKeys
from rubrics.errors import InvalidNode
from rubrics.node import Status
from rubrics.scoring import score_nodes, unknown_leaves
from rubrics.tree import walk
from rubrics.verdict import Outcome, Support, Verdict


@dataclass(slots=True, kw_only=True, eq=False)  # frozen ones take three times as long to create
class Node:
    """Node of a result's tree, never changed. ``fields`` are its JSON fields that have no attribute here."""

    key: str
    id: str
    desc: str
    critical: bool
    weight: float
    strategy: str
    status: str
    score: float
    depth: int
    children: tuple[Node, ...]
    outcome: str | None
    """Outcome of a leaf; None for inner nodes."""
    fields: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """Last part of the id. The tree already shows the other parts."""
        return self.id.rpartition("/")[2] or self.id

    @property
    def is_partly(self) -> bool:
        """Whether this is a partly supported claim."""
        return not self.children and self.fields.get("support") == Support.PARTLY_SUPPORTED

    @property
    def state(self) -> str:
        """Outcome of a leaf, status of an inner node."""
        return self.outcome or self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Tree of a result. ``unknown`` are the keys of leaves whose score is unknown because they were not judged.

    ``bounds`` has the lowest and highest possible score of each node that has such a leaf, by key.
    """

    root: Node
    by_key: Mapping[str, Node]
    parents: Mapping[str, Node]
    leaves: Sequence[Node]
    unknown: frozenset[str]
    bounds: Mapping[str, tuple[float, float]]

    def bounds_of(self, node: Node) -> tuple[float, float]:
        """Return the lowest and highest possible score of a node."""
        return self.bounds.get(node.key, (node.score, node.score))

    def path(self, key: str) -> list[Node]:
        """Return the nodes from the root to a node."""
        node, ancestors = self.by_key[key], [self.by_key[key]]
        while node.key in self.parents:
            node = self.parents[node.key]
            ancestors.append(node)
        return ancestors[::-1]

    def by_id(self, id: str | None) -> Node | None:
        """Return the first node with this id."""
        return next((node for node in self.by_key.values() if node.id == id), None)


def outline(result: Mapping[str, Any]) -> Outline:
    """Return the outline of a result's tree; of the first tree if a public script wrote several."""
    parts = result.get("eval_breakdown") or []
    tree = parts[0]["verification_tree"] if parts else _EMPTY_TREE
    root = _node(tree, 0, NodeKeys())
    nodes = list(walk(root))
    parents = {child.key: node for node in nodes for child in node.children}
    leaves = tuple(node for node in nodes if not node.children)
    unknown = _unknown(leaves)
    return Outline(
        root=root,
        by_key={node.key: node for node in nodes},
        parents=parents,
        leaves=leaves,
        unknown=unknown,
        bounds=_bounds(root, parents, unknown),
    )


_EMPTY_TREE: Mapping[str, Any] = {"id": "root", "desc": "This result has no tree"}
_NODE_FIELDS = frozenset({"children", "critical", "desc", "id", "outcome", "score", "status", "strategy", "weight"})


def _node(data: Mapping[str, Any], depth: int, addresses: NodeKeys) -> Node:
    id = str(data["id"])
    key = addresses.key(id)
    children = tuple(_node(child, depth + 1, addresses) for child in data.get("children") or ())
    return Node(
        key=key,
        id=id,
        desc=str(data.get("desc") or ""),
        critical=bool(data.get("critical")),
        weight=float(data.get("weight") or 1.0),
        strategy=str(data.get("strategy") or "parallel"),
        status=str(data.get("status") or "initialized"),
        score=float(data.get("score") or 0.0),
        depth=depth,
        children=children,
        outcome=None if children else _outcome(data),
        fields={name: value for name, value in data.items() if name not in _NODE_FIELDS},
    )


_OUTCOMES = frozenset(Outcome)
_MAYBE_UNKNOWN = frozenset({Outcome.NOT_JUDGED, Outcome.SKIPPED})


def _outcome(data: Mapping[str, Any]) -> str:
    """Return the outcome of a leaf. Results of the public toolkit have only a status."""
    outcome = data.get("outcome")
    if outcome in _OUTCOMES:
        return str(outcome)
    return {"passed": "passed", "failed": "failed", "skipped": "skipped"}.get(str(data.get("status")), "undecided")


def _unknown(leaves: Sequence[Node]) -> frozenset[str]:
    if all(leaf.outcome != Outcome.NOT_JUDGED for leaf in leaves):
        return frozenset()
    first_with_id = {leaf.id: leaf for leaf in reversed(leaves)}
    verdicts: dict[str, Verdict | None] = {
        leaf.id: Verdict(outcome=Outcome(leaf.state), blocked_by=leaf.fields.get("blocked_by"))
        for leaf in first_with_id.values()
        if leaf.outcome in _MAYBE_UNKNOWN
    }
    ids = unknown_leaves(verdicts)
    return frozenset(leaf.key for leaf in leaves if leaf.id in ids)


def _bounds(root: Node, parents: Mapping[str, Node], unknown: frozenset[str]) -> dict[str, tuple[float, float]]:
    """Return the bounds of the unknown leaves and of all nodes above them; empty if a weight is invalid."""
    if not unknown:
        return {}

    def points(leaf: Node, unknown_points: float) -> tuple[float, Status]:
        known = 1.0 if leaf.outcome == Outcome.PASSED else 0.0
        return unknown_points if leaf.key in unknown else known, Status.INITIALIZED

    try:
        low, high = (score_nodes(root, partial(points, unknown_points=each)) for each in (0.0, 1.0))
    except InvalidNode:  # public scripts may store such trees
        return {}
    above: dict[str, Node] = {}
    for node in walk(root):
        if node.key in unknown:
            while node.key not in above:
                above[node.key] = node
                node = parents.get(node.key, root)
    return {key: (low[id(node)].score, high[id(node)].score) for key, node in above.items()}
