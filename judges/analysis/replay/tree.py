"""The tree of a result, read back from its JSON: as much as scores are made of, and what each leaf rests on.

Native trees and those of public judge scripts are read alike. Scores of inner nodes are read to be compared, never
to be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judges.analysis.replay.difference import NotRecomputable
from rubrics.node import Status, Strategy
from rubrics.verdict import Outcome, Reason

MAX_DEPTH = 200

_Share = Annotated[float, Field(ge=0.0, le=1.0)]


class RecordedVote(BaseModel):
    """One vote of a leaf."""

    model_config = ConfigDict(frozen=True)

    result: bool | None
    fault: Reason | None = None


class RecordedQuote(BaseModel):
    """A passage that a verdict rests on."""

    model_config = ConfigDict(frozen=True)

    text: str
    page_id: str
    start: int
    end: int
    origin: str = "text"


class RecordedNode(BaseModel):
    """One node as the result has it. Of an inner node only the public fields mean anything."""

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
    blocked_by: str | None = None
    grounded: bool | None = None
    low: _Share | None = None
    high: _Share | None = None
    """What a leaf of a public script may count; None for native leaves, of which the verdicts say it all."""
    votes: list[RecordedVote] = []
    quotes: list[RecordedQuote] = []

    def walk(self) -> Iterator[RecordedNode]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[RecordedNode]:
        return (node for node in self.walk() if not node.children)


def tree_of(result: Mapping[str, Any]) -> RecordedNode:
    """The tree of a result.

    Raises:
        NotRecomputable: it has none, or one that cannot be read.
    """
    breakdown = result.get("eval_breakdown")
    if not isinstance(breakdown, list) or not breakdown:
        raise NotRecomputable("the judge script gave a number of its own and no tree")
    if len(breakdown) != 1 or not isinstance(breakdown[0], Mapping):
        raise NotRecomputable(f"it has {len(breakdown)} trees, and nothing says how they make one score")
    document = breakdown[0].get("verification_tree")
    if _depth(document) > MAX_DEPTH:
        raise NotRecomputable(f"its tree is deeper than {MAX_DEPTH}")
    try:
        return RecordedNode.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise NotRecomputable(f"its tree cannot be read at {where or 'its root'}: {first['msg']}") from error


def _depth(document: Any) -> int:
    """How deep nodes stand in each other, without recursion: a bundle may come from anybody."""
    level, depth = [document], 0
    while level and depth <= MAX_DEPTH:
        children = [node.get("children") for node in level if isinstance(node, Mapping)]
        level = [child for each in children if isinstance(each, list) for child in each]
        depth += 1
    return depth
