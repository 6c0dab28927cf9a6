"""Rubric: the tree of nodes that a judge declares for one answer, with the rules for adding nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rubrics.tree import RubricNode, Strategy, leaves_below, walk


class RubricError(ValueError):
    """Base of all rubric errors. The message names the problem and the node."""


class InvalidNode(RubricError):
    """A node that breaks a rule of the tree, or has a value that cannot be scored. ``node_id``: its id, if known."""

    def __init__(self, message: str, node_id: str = "") -> None:
        super().__init__(message)
        self.node_id = node_id


class UnknownNode(RubricError):
    """An id that is not in the rubric."""


ROOT_ID = "root"


class Rubric:
    """Weighted tree of one task, built from the root down.

    Add nodes only with ``add``. It ensures that ids are unique and that all children of a critical node are critical.
    """

    def __init__(self, task_id: str, desc: str, strategy: Strategy = Strategy.PARALLEL) -> None:
        self.task_id = task_id
        self.root = RubricNode(id=ROOT_ID, desc=desc, strategy=strategy)
        self._nodes: dict[str, RubricNode] = {ROOT_ID: self.root}
        self._parents: dict[str, RubricNode] = {}

    def add(self, parent: RubricNode, node: RubricNode) -> RubricNode:
        """Add ``node`` as the last child of ``parent`` and return it.

        Raises:
            InvalidNode: The id is empty or in use. The weight is 0 or not finite. The parent is a leaf with a claim or
                check, or is critical while the node is not. The node has both a claim and a check, already has
                children, or requires one of its ancestors. A penalty is combined with a gate.
            UnknownNode: ``parent``, or a node named in ``requires``, is not in this rubric.
        """
        self._check_member(parent)
        if not node.id or node.id in self._nodes:
            raise InvalidNode(f"node id {node.id!r} is {'already in use' if node.id else 'empty'}")
        _check_values(node)
        check_penalty(node, self.path_to(parent))
        if parent.claim is not None or parent.check is not None:
            raise InvalidNode(f"node {node.id!r}: its parent {parent.id!r} is a leaf with a claim or a check")
        if parent.critical and not node.critical:
            raise InvalidNode(f"node {node.id!r}: its parent {parent.id!r} is critical, so it must be critical too")
        self._check_requires(node, [*self.path_to(parent), node])
        parent.children.append(node)
        self._nodes[node.id] = node
        self._parents[node.id] = parent
        return node

    def find(self, node_id: str) -> RubricNode:
        """Return the node with this id.

        Raises:
            UnknownNode: No node has this id.
        """
        if node_id not in self._nodes:
            raise UnknownNode(f"no node {node_id!r} in the rubric of {self.task_id!r}")
        return self._nodes[node_id]

    def __contains__(self, node_id: str) -> bool:
        return node_id in self._nodes

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._nodes)

    def walk(self) -> Iterator[RubricNode]:
        """Iterate over all nodes, parents before children."""
        return walk(self.root)

    def leaves(self) -> Iterator[RubricNode]:
        """Iterate over all nodes without children, from left to right."""
        return leaves_below(self.root)

    def path_to(self, node: RubricNode) -> list[RubricNode]:
        """Return the nodes from the root down to ``node``.

        Raises:
            UnknownNode: The node is not in this rubric.
        """
        self._check_member(node)
        path = [node]
        while (above := self._parents.get(path[-1].id)) is not None:
            path.append(above)
        return path[::-1]

    def required_by(self, node: RubricNode) -> list[RubricNode]:
        """Return the nodes that ``node`` and its ancestors name in ``requires``, those of ``node`` first."""
        return [self.find(node_id) for each in reversed(self.path_to(node)) for node_id in each.requires]

    def _check_member(self, node: RubricNode) -> None:
        if self._nodes.get(node.id) is not node:
            raise UnknownNode(f"node {node.id!r} is not in the rubric of {self.task_id!r}")

    def _check_requires(self, node: RubricNode, path: list[RubricNode]) -> None:
        for node_id in node.requires:
            required = self.find(node_id)
            if required in path:
                raise InvalidNode(f"node {node.id!r} requires {node_id!r}, which contains it")
            if any(each.weight < 0 for each in (*path, *self.path_to(required))):
                raise InvalidNode(required_penalty(node.id, node_id), node.id)


def _check_values(node: RubricNode) -> None:
    if not math.isfinite(node.weight) or node.weight == 0:
        raise InvalidNode(f"node {node.id!r}: weight {node.weight!r} is 0 or not finite; use another number", node.id)
    if node.claim is not None and node.check is not None:
        raise InvalidNode(f"node {node.id!r}: a leaf has a claim or a check, not both")
    if node.children:
        raise InvalidNode(f"node {node.id!r} already has children: add it first, then each of them")


def critical_penalty(node_id: str, weight: float) -> str:
    """Return the error message for a penalty that is critical, or part of a critical group."""
    return (
        f"node {node_id!r}: a penalty (weight {weight:g}) cannot be critical; remove `critical`, or move it out of the "
        "critical group. If the mistake must give 0, make a critical claim or check of its opposite, without a weight"
    )


def required_penalty(node_id: str, required: str) -> str:
    """Return the error message for a prerequisite that is part of a penalty, or of a part of one."""
    return (
        f"node {node_id!r} requires {required!r}, and one of the two is part of a penalty: a penalty is judged in any "
        "case; remove the prerequisite"
    )


def check_penalty(node: RubricNode, above: Sequence[RubricNode]) -> None:
    """Check that no penalty is combined with a gate, so that scores stay monotone in every leaf.

    ``above`` are the nodes from the root down to the parent.

    Raises:
        InvalidNode: The node is a penalty, or part of one, and it is critical, a step of a sequence, or a penalty
            inside another one.
    """
    penalty = next((each for each in (*above, node) if each.weight < 0), None)
    if penalty is None:
        return
    if node is not penalty and node.weight < 0:
        raise InvalidNode(f"node {node.id!r}: it is inside the penalty {penalty.id!r}; use a positive weight", node.id)
    if node.critical:
        raise InvalidNode(critical_penalty(penalty.id, penalty.weight), node.id)
    if node is penalty and above[-1].critical:
        raise InvalidNode(critical_penalty(node.id, node.weight), node.id)
    if node is penalty and above[-1].strategy is Strategy.SEQUENTIAL:
        raise InvalidNode(
            f"node {node.id!r}: a penalty (weight {node.weight:g}) cannot be a step of the sequence {above[-1].id!r}; "
            "put the steps into a group of their own, and the penalty beside it",
            node.id,
        )
