"""Verification tree of the public toolkit, scored by the rules of ``rubrics.scoring``.

The model has the public fields in the public order, with our ``weight`` before ``evidence``. All other data about a
node (for example why a leaf was not judged) is in ``mind2web2.decisions``, so that ``model_dump`` returns what judge
scripts expect.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from rubrics.scoring import NodeScore, score_nodes
from rubrics.tree import Status, Strategy

__all__ = ["AggregationStrategy", "NodeStatus", "VerificationNode"]

AggregationStrategy = Strategy
"""String enum PARALLEL and SEQUENTIAL, with the values used in JSON."""

NodeStatus: TypeAlias = Literal["passed", "failed", "partial", "skipped", "initialized"]
_STATUSES: Final = frozenset(Status)


class VerificationNode(BaseModel):
    """Node of the tree; without children, it is a leaf. Validated on creation, not on assignment."""

    id: str
    desc: str
    critical: bool = False
    score: float = Field(default=0.0, ge=0.0, le=1.0)
    status: NodeStatus = "initialized"
    strategy: AggregationStrategy = AggregationStrategy.PARALLEL
    children: list[VerificationNode] = Field(default_factory=list)
    weight: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    evidence: dict[str, Any] | None = None
    """The verified claim and its judgement on each source (see ``mind2web2.evidence``); None unless verified."""

    _aggregated: float | None = PrivateAttr(default=None)
    _before_scoring: tuple[float, NodeStatus] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _status_fits_score(self) -> VerificationNode:
        fits = {
            "passed": self.score == 1.0,
            "partial": 0.0 < self.score < 1.0,
            "failed": self.score == 0.0,
            "skipped": self.score == 0.0,
            "initialized": True,
        }
        if not fits[self.status]:
            raise ValueError(f"a node that is {self.status} cannot have the score {self.score}")
        return self

    @property
    def claim(self) -> str:
        """Alias of ``desc``."""
        return self.desc

    @claim.setter
    def claim(self, text: str) -> None:
        self.desc = text

    def add_node(self, child: VerificationNode) -> None:
        """Append a child.

        Raises:
            AssertionError: it is not a VerificationNode, or is this node.
            ValueError: this node is critical and ``child`` is not.
        """
        if not isinstance(child, VerificationNode):
            raise AssertionError(f"a child must be a VerificationNode, not {type(child).__name__}")
        if child is self:
            raise AssertionError("a node cannot be its own child")
        if self.critical and not child.critical:
            raise ValueError(f"node {self.id!r} is critical, so its child {child.id!r} must be critical too")
        self.children.append(child)

    def compute_score(self, *, mutate: bool = False) -> float:
        """Return the score of this subtree, 0 to 1. ``mutate`` stores scores and statuses in the whole subtree."""
        settled = score_nodes(self, lambda leaf: NodeScore(leaf.score, as_status(leaf)))
        if mutate:
            for node in self.walk():
                score, status = settled[id(node)]
                node._take_aggregate(score, status.value)
        return settled[id(self)].score

    @property
    def aggregated_score(self) -> float:
        """Score as first computed, which also updates the tree; ``compute_score(mutate=True)`` recomputes it."""
        if self._aggregated is None:
            self.compute_score(mutate=True)
        return self._aggregated if self._aggregated is not None else 0.0

    @property
    def decision(self) -> tuple[float, NodeStatus]:
        """Score and status as last decided, before scoring set this node to 0 because of a missed step."""
        skipped_by_scoring = self.status == "skipped" and self.score == 0.0
        if skipped_by_scoring and self._before_scoring is not None:
            return self._before_scoring
        return self.score, self.status

    def decide(self, score: float, status: NodeStatus) -> None:
        """Overwrite score and status with a new decision."""
        self.score = score
        self.status = status
        self._before_scoring = None

    def _take_aggregate(self, score: float, status: NodeStatus) -> None:
        if not self.children and (score, status) != (self.score, self.status):
            self._before_scoring = self.decision
        self.score = score
        self.status = status
        self._aggregated = score

    def walk(self) -> list[VerificationNode]:
        """Return this node and all descendants, each once. Scripts may add a node twice or create cycles."""
        nodes = {id(self): self}
        pending = [self]
        for node in pending:
            new = {id(child): child for child in node.children if id(child) not in nodes}
            nodes |= new
            pending.extend(new.values())
        return pending


def as_status(node: VerificationNode) -> Status:
    """Return a node's status as the enum that gating and scoring use. Scripts may assign an unknown one: it is open."""
    return Status(node.status) if node.status in _STATUSES else Status.INITIALIZED
