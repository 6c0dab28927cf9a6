"""Nodes of weighted trees: those of a rubric, the protocol that they share with other trees, and traversal functions.

With the protocol, the same code gates and scores the native ``RubricNode`` and the ``VerificationNode`` of the public
toolkit. The functions only read the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, Self, TypeVar

from rubrics.verdict import Claim, Verdict


class Strategy(StrEnum):
    """How the scores of a node's children are combined. Values as in the JSON of the public toolkit."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class Status(StrEnum):
    """Compatible status of a node. Values as in the JSON of the public toolkit."""

    PASSED = "passed"
    FAILED = "failed"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    INITIALIZED = "initialized"


@dataclass(slots=True, eq=False, kw_only=True)
class RubricNode:
    """Node of a rubric. A node without children is a leaf.

    A leaf has either a ``claim`` (for a model) or a ``check`` (decided by code), and a ``verdict`` after it is judged.
    A negative ``weight`` makes the node a penalty: its score is subtracted.
    ``requires`` contains the ids of additional prerequisites.
    """

    id: str
    desc: str
    critical: bool = False
    weight: float = 1.0
    strategy: Strategy = Strategy.PARALLEL
    claim: Claim | None = None
    check: bool | None = None
    expression: str = ""
    """What the check compared, with the values."""
    requires: tuple[str, ...] = ()
    verdict: Verdict | None = None
    children: list[RubricNode] = field(default_factory=list)


class TreeNode(Protocol):
    """Node of a weighted tree. A node without children is a leaf, even if it is the root."""

    @property
    def id(self) -> str: ...

    @property
    def critical(self) -> bool: ...

    @property
    def weight(self) -> float: ...

    @property
    def strategy(self) -> str:
        """``parallel`` or ``sequential``, as a plain string or a string enum."""
        ...

    @property
    def children(self) -> Sequence[Self]: ...


N = TypeVar("N", bound=TreeNode)
_UNADDRESSABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
"""Characters that do not survive a round trip through an HTML attribute or a URL."""


def walk(node: N) -> Iterator[N]:
    """Iterate over the node and its descendants, parents before children."""
    yield node
    for child in node.children:
        yield from walk(child)


def leaves_below(node: N) -> Iterator[N]:
    """Iterate over the leaves of a subtree from left to right. A node without children is its own leaf."""
    return (each for each in walk(node) if not each.children)


def find_path(root: N, node: N) -> list[N]:
    """Return the nodes from ``root`` down to ``node``; empty if ``node`` is not in the tree.

    Nodes are compared by identity, because a public task script can create two nodes with the same id.
    """
    if root is node:
        return [root]
    for child in root.children:
        below = find_path(child, node)
        if below:
            return [root, *below]
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeStatistics:
    """Size of a tree. A root without children has depth 0, one node and one leaf."""

    depth: int
    total_nodes: int
    leaf_nodes: int


def statistics(root: TreeNode) -> TreeStatistics:
    """Compute the size of a tree."""
    depth = total = leaf_count = 0
    pending: list[tuple[TreeNode, int]] = [(root, 0)]
    while pending:
        node, level = pending.pop()
        total += 1
        depth = max(depth, level)
        leaf_count += not node.children
        pending.extend((child, level + 1) for child in node.children)
    return TreeStatistics(depth=depth, total_nodes=total, leaf_nodes=leaf_count)


class NodeKeys:
    """Generator of unique keys for the nodes of a stored tree, for URLs and HTML attributes.

    A key is the id of the node. Because public task scripts may give two nodes the same id, later ones get a suffix.
    Pass the nodes in tree order: parents before children.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def key(self, id: str) -> str:
        """Return ``id`` for the first node with this id, then ``id~2``, ``id~3``..."""
        plain = id if id.isprintable() else _UNADDRESSABLE.sub("\ufffd", id)
        self._seen[plain] = self._seen.get(plain, 0) + 1
        return plain if self._seen[plain] == 1 else f"{plain}~{self._seen[plain]}"
