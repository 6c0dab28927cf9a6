"""Model of a public judge script, which settles the leaves of its tree in any order.

Its node is not a RubricNode: gating and scoring accept any node of the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rubrics.gating import first_blocker, prerequisites
from rubrics.node import Status
from rubrics.scoring import NodeScore, score_nodes
from rubrics.tree import find_path


@dataclass(eq=False)
class ScriptNode:
    """Node with its own score and status."""

    id: str
    strategy: str = "parallel"
    critical: bool = False
    weight: float = 1.0
    score: float = 0.0
    status: Status = Status.INITIALIZED
    children: list[ScriptNode] = field(default_factory=list)

    def add(self, *children: ScriptNode) -> ScriptNode:
        self.children.extend(children)
        return self


def parallel(node_id: str, *children: ScriptNode, critical: bool = False) -> ScriptNode:
    return ScriptNode(node_id, critical=critical).add(*children)


def sequential(node_id: str, *children: ScriptNode, critical: bool = False) -> ScriptNode:
    return ScriptNode(node_id, strategy="sequential", critical=critical).add(*children)


def leaf(node_id: str, *, critical: bool = False) -> ScriptNode:
    return ScriptNode(node_id, critical=critical)


def custom(node_id: str, result: bool, *, critical: bool = False) -> ScriptNode:
    node = ScriptNode(node_id, critical=critical)
    _write(node, result)
    return node


def _write(node: ScriptNode, result: bool) -> None:
    node.score, node.status = (1.0, Status.PASSED) if result else (0.0, Status.FAILED)


def blocker(root: ScriptNode, node: ScriptNode, extra: Sequence[ScriptNode] = ()) -> ScriptNode | None:
    return first_blocker(prerequisites(find_path(root, node), extra), lambda each: each.status, lambda each: False)


def verify(root: ScriptNode, node: ScriptNode, result: bool, extra: Sequence[ScriptNode] = ()) -> bool:
    """Settle one node like the verify function of the public toolkit; return False if it is gated."""
    if blocker(root, node, extra) is not None:
        node.score, node.status = 0.0, Status.SKIPPED
        return False
    _write(node, result)
    return result


def final(root: ScriptNode) -> dict[str, tuple[float, str]]:
    """Return score and status of each node by id, as in the tree of a summary."""
    settled: dict[int, NodeScore] = score_nodes(root, lambda each: NodeScore(each.score, each.status))
    found: dict[str, tuple[float, str]] = {}

    def read(node: ScriptNode) -> None:
        score, status = settled[id(node)]
        found[node.id] = (score, status.value)
        for child in node.children:
            read(child)

    read(root)
    return found
