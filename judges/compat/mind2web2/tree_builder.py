"""Construction of a verification tree: unique ids, inner nodes, leaves, and leaves decided by code."""

from __future__ import annotations

from itertools import count
from typing import Any

from mind2web2.decisions import Decisions, checked
from mind2web2.verification_tree import AggregationStrategy, VerificationNode
from rubrics.tree import leaves_below, walk

ROOT_ID = "root"


class TreeBuilder:
    """Verification tree of one task script."""

    def __init__(self) -> None:
        self.root: VerificationNode | None = None
        self._ids: set[str] = set()
        """Ids in use. An id stays in use even if its node is not created."""
        self._decisions = Decisions()

    def create_root(self, desc: str, strategy: AggregationStrategy) -> VerificationNode:
        """Create a new root."""
        self._ids.add(ROOT_ID)
        self.root = VerificationNode(id=ROOT_ID, desc=desc, strategy=strategy)
        self._decisions.roots.append(self.root)
        return self.root

    def add_parallel(
        self, id: str, desc: str, parent: VerificationNode | None = None, **node_fields: Any
    ) -> VerificationNode:
        """Add an inner node whose children are independent of each other; ``parent=None`` is the root.

        Raises:
            ValueError: before ``initialize``; an invalid field; a node that is not critical below a critical parent.
        """
        unique = self._reserve(id)
        return self._add(unique, desc, parent, strategy=AggregationStrategy.PARALLEL, **node_fields)

    def add_sequential(
        self, id: str, desc: str, parent: VerificationNode | None = None, **node_fields: Any
    ) -> VerificationNode:
        """Add an inner node whose children are ordered steps. Same errors as ``add_parallel``."""
        unique = self._reserve(id)
        return self._add(unique, desc, parent, strategy=AggregationStrategy.SEQUENTIAL, **node_fields)

    def add_leaf(
        self,
        id: str,
        desc: str,
        parent: VerificationNode | None = None,
        critical: bool = False,
        score: float = 0.0,
        status: str = "initialized",
        **node_fields: Any,
    ) -> VerificationNode:
        """Add a leaf, by default undecided.

        Raises:
            ValueError: see ``add_parallel``; a score other than 0.0 and 1.0; an invalid status for a leaf.
        """
        unique = self._reserve(id)
        if score not in (0.0, 1.0):
            raise ValueError(f"the score of a leaf must be 0.0 or 1.0, not {score!r}")
        if status not in ("passed", "failed", "skipped", "initialized"):
            raise ValueError(f"a leaf cannot have the status {status!r}")
        fields = {"critical": critical, "score": score, "status": status, **node_fields}
        leaf = self._add(unique, desc, parent, **fields)
        if status in ("passed", "failed"):
            self._decisions.record_existing(leaf, checked(status == "passed"))
        return leaf

    def add_custom_node(
        self, result: Any, id: str, desc: str, parent: VerificationNode | None = None, critical: bool = True
    ) -> VerificationNode:
        """Add a leaf that code has decided: it passes if ``result`` is truthy.

        Raises:
            ValueError: see ``add_parallel``.
        """
        passed = bool(result)
        return self.add_leaf(
            id, desc, parent, critical=critical, score=float(passed), status="passed" if passed else "failed"
        )

    add_existence_node = add_custom_node

    def _reserve(self, id: str) -> str:
        """Reserve ``id``, or the first free name with a suffix ``_1``, ``_2``, … if it is taken."""
        unique = id
        if id in self._ids:
            unique = next(name for number in count(1) if (name := f"{id}_{number}") not in self._ids)
        self._ids.add(unique)
        return unique

    def _add(self, unique_id: str, desc: str, parent: VerificationNode | None, **node_fields: Any) -> VerificationNode:
        above = self.root if parent is None else parent
        if above is None:
            raise ValueError("the evaluator is not initialized: call initialize first")
        node = VerificationNode(id=unique_id, desc=desc, **node_fields)
        above.add_node(node)
        return node

    def find_node(self, id: str) -> VerificationNode | None:
        """Return the node with this id, or None."""
        nodes = walk(self.root) if self.root is not None else iter(())
        return next((node for node in nodes if node.id == id), None)

    def leaves_done_and_known(self) -> tuple[int, int]:
        """Return the numbers of settled leaves and of all leaves so far."""
        leaves = [] if self.root is None else list(leaves_below(self.root))
        return sum(leaf.status != "initialized" for leaf in leaves), len(leaves)

    def get_all_node_ids(self) -> list[str]:
        """Return all ids in use, sorted, including "root" once there is a root."""
        return sorted(self._ids)

    def check_id_available(self, id: str) -> bool:
        return id not in self._ids

    def get_node_count(self) -> int:
        """Return the number of ids in use."""
        return len(self._ids)
