"""Model of a public task script, which settles the leaves of its tree in any order.

Its node is not a RubricNode: gating and scoring accept any node of the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rubrics.tree import Status


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
