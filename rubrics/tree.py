"""The shape gating and scoring work on, and the walks over it.

A structural protocol, so that the native ``RubricNode`` and the public toolkit's
``VerificationNode`` are gated and scored by the same code. Reads only, never writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar


class TreeNode(Protocol):
    """A node of a weighted tree; one without children is a leaf, the root too."""

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


def walk(node: N) -> Iterator[N]:
    """The node and everything below it, parents before children."""
    yield node
    for child in node.children:
        yield from walk(child)


def leaves_below(node: N) -> Iterator[N]:
    """The leaves of a subtree from left to right; a childless node is its own leaf."""
    return (each for each in walk(node) if not each.children)


def find_path(root: N, node: N) -> list[N]:
    """The nodes from ``root`` down to ``node``; empty where ``node`` is not in the tree.

    Nodes are told apart by identity: a public judge script can build two with the same id.
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
    """The size of a tree; a lone root has depth 0, one node and one leaf."""

    depth: int
    total_nodes: int
    leaf_nodes: int


def statistics(root: TreeNode) -> TreeStatistics:
    """Count a tree."""
    depth = total = leaf_count = 0
    pending: list[tuple[TreeNode, int]] = [(root, 0)]
    while pending:
        node, level = pending.pop()
        total += 1
        depth = max(depth, level)
        leaf_count += not node.children
        pending.extend((child, level + 1) for child in node.children)
    return TreeStatistics(depth=depth, total_nodes=total, leaf_nodes=leaf_count)
