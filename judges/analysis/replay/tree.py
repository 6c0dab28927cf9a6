"""Parser of the tree in a result's JSON: the fields that determine scores and the evidence of each leaf.

Trees of native judges and of public scripts are parsed alike. Recorded scores of inner nodes are only compared, never
used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rubrics.node import Status, Strategy
from rubrics.verdict import Outcome, Quote, Reason

MAX_DEPTH = 200

_Share = Annotated[float, Field(ge=0.0, le=1.0)]


class RecordedVote(BaseModel):
    """One vote of a leaf."""

    model_config = ConfigDict(frozen=True)

    result: bool | None
    model: str = ""
    fault: Reason | None = None


class RecordedMember(BaseModel):
    """Verdict of one member of a jury on a leaf."""

    model_config = ConfigDict(frozen=True)

    outcome: Outcome


class RecordedNode(BaseModel):
    """One recorded node. Only the fields of the public toolkit are meaningful for inner nodes."""

    model_config = ConfigDict(allow_inf_nan=False)

    id: str
    desc: str = ""
    critical: bool
    score: float
    status: Status
    strategy: Strategy
    children: list[RecordedNode]
    weight: Annotated[float, Field(gt=0)] = 1.0
    outcome: Outcome = Outcome.UNDECIDED
    reason: Reason | None = None
    sources: list[str] | None = None
    blocked_by: str | None = None
    claim: str | None = None
    grounded: bool | None = None
    low: _Share | None = None
    high: _Share | None = None
    """Bounds of a leaf of a public script; None for native leaves, whose bounds follow from the verdict."""
    votes: list[RecordedVote] = []
    jury: list[RecordedMember] = []
    quotes: list[Quote] = []


def tree_of(result: Mapping[str, Any]) -> RecordedNode:
    """Return the tree of a result.

    Raises:
        NotRecomputable: the result has no tree, or an unreadable one.
    """
    breakdown = result.get("eval_breakdown")
    if not isinstance(breakdown, list) or not breakdown:
        raise NotRecomputable("the task script returned a score without a tree")
    if len(breakdown) != 1 or not isinstance(breakdown[0], Mapping):
        raise NotRecomputable(f"the result has {len(breakdown)} trees, and it is undefined how they form one score")
    document = breakdown[0].get("verification_tree")
    if _depth(document) > MAX_DEPTH:
        raise NotRecomputable(f"the tree is nested more than {MAX_DEPTH} levels deep")
    try:
        return RecordedNode.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise NotRecomputable(f"the tree is malformed at {location or 'its root'}: {first['msg']}") from error


def _depth(document: Any) -> int:
    """Return the nesting depth. Iterative, because a bundle is untrusted and may be deeply nested."""
    level, depth = [document], 0
    while level and depth <= MAX_DEPTH:
        children = [node.get("children") for node in level if isinstance(node, Mapping)]
        level = [child for each in children if isinstance(each, list) for child in each]
        depth += 1
    return depth


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDifference:
    """One figure that differs: its position in the result, the recorded and the recomputed value."""

    where: str
    recorded: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.where}: the result says {self.recorded!r}, recomputed {self.recomputed!r}"


class NotRecomputable(Exception):
    """The result lacks the data that its figures are computed from. The message names it."""
