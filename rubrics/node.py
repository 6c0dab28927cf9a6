"""The nodes of a rubric: a weighted tree with critical gates. Pure data, no IO."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from rubrics.verdict import Claim, Verdict


class Strategy(StrEnum):
    """How the children of a node relate. The words are those of the public toolkit's JSON."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class Status(StrEnum):
    """The compatible status of a node, as the public toolkit writes it."""

    PASSED = "passed"
    FAILED = "failed"
    PARTIAL = "partial"
    SKIPPED = "skipped"
    INITIALIZED = "initialized"


@dataclass(slots=True, eq=False, kw_only=True)
class RubricNode:
    """One node; a node without children is a leaf.

    A leaf carries either a ``claim`` (asked of a judge) or a ``check`` (decided by code), and a
    ``verdict`` once it is settled. ``requires`` names further nodes that must not have failed.
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
