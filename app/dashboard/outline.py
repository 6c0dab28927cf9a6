"""A result's tree as values that a page can be written from: every node with a name of its own, its place and facts.

Public scripts may give two nodes the same id; here each has a ``key``, which is the id where that is
unique and can stand in an address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rubrics.addresses import Addresses
from rubrics.scoring import unknown_leaves
from rubrics.tree import leaves_below, walk
from rubrics.verdict import Outcome, Verdict


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One node as the result has it. ``facts`` are the JSON fields that are not listed here."""

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
    """Of a leaf: what became of it. None: an inner node."""
    facts: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """The last part of the id: the rest says where the node is, and the tree shows that."""
        return self.id.rpartition("/")[2] or self.id

    @property
    def state(self) -> str:
        """What is shown of it: a leaf's outcome, an inner node's status."""
        return self.outcome or self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A whole tree. ``unknown`` are the keys of leaves about which nothing was found out."""

    root: Node
    by_key: Mapping[str, Node]
    parents: Mapping[str, Node]
    unknown: frozenset[str]

    @property
    def leaves(self) -> Sequence[Node]:
        return tuple(leaves_below(self.root))

    def path(self, key: str) -> list[Node]:
        """From the root down to a node."""
        node, found = self.by_key[key], [self.by_key[key]]
        while node.key in self.parents:
            node = self.parents[node.key]
            found.append(node)
        return found[::-1]

    def by_id(self, id: str | None) -> Node | None:
        """The first node with this id."""
        return next((node for node in self.by_key.values() if node.id == id), None)


def outline(result: Mapping[str, Any]) -> Outline:
    """The outline of a result's tree; the first one where a public script wrote several."""
    parts = result.get("eval_breakdown") or []
    tree = parts[0]["verification_tree"] if parts else _NOTHING
    root = _node(tree, 0, Addresses())
    parents = {child.key: node for node in walk(root) for child in node.children}
    ordered = {node.key: node for node in walk(root)}
    return Outline(root=root, by_key=ordered, parents=parents, unknown=_unknown(root))


_NOTHING: Mapping[str, Any] = {"id": "root", "desc": "This result has no tree"}
_OWN = frozenset({"children", "critical", "desc", "id", "outcome", "score", "status", "strategy", "weight"})


def _node(data: Mapping[str, Any], depth: int, addresses: Addresses) -> Node:
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
        facts={name: value for name, value in data.items() if name not in _OWN},
    )


def _outcome(data: Mapping[str, Any]) -> str:
    """A leaf's outcome; results of the public toolkit have only a status."""
    given = data.get("outcome")
    if given in set(Outcome):
        return str(given)
    return {"passed": "passed", "failed": "failed", "skipped": "skipped"}.get(str(data.get("status")), "undecided")


def _unknown(root: Node) -> frozenset[str]:
    leaves = list(leaves_below(root))
    verdicts: dict[str, Verdict | None] = {
        leaf.id: Verdict(outcome=Outcome(leaf.state), blocked_by=leaf.facts.get("blocked_by"))
        for leaf in reversed(leaves)
    }
    ids = unknown_leaves(verdicts)
    return frozenset(leaf.key for leaf in leaves if leaf.id in ids)
