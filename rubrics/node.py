"""Nodes of a rubric. Pure data, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

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
    ``requires`` contains the ids of additional prerequisites.
    """

    id: str
    desc: str
    critical: bool = False
    weight: float = 1.0
    strategy: Strategy = Strategy.PARALLEL
    claim: Claim | None = None
    check: bool | None = None
    requires: tuple[str, ...] = ()
    verdict: Verdict | None = None
    children: list[RubricNode] = field(default_factory=list)
