"""Recomputation of all figures of a result that follow from its tree, from the verdicts on the leaves.

The parser of the tree in a result's JSON keeps the fields that determine scores and the evidence of each leaf. Trees of
native judges and of public scripts are parsed alike. Recorded scores of inner nodes are only compared, never used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judges.prompting.blocks import neutralise
from judges.registry import JudgeKind
from judges.result import score_json
from rubrics.rubric import RubricError
from rubrics.scoring import (
    NodeScore,
    Score,
    bounds,
    compatible_score,
    has_penalties,
    penalty_leaves,
    score_nodes,
    unclipped_score,
    unknown_leaves,
)
from rubrics.tree import Status, Strategy, leaves_below, statistics, walk
from rubrics.tree_json import SUPPLIED, may_lack_parts
from rubrics.verdict import Outcome, Quote, QuoteOrigin, Reason, Verdict

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
    weight: float = 1.0
    outcome: Outcome = Outcome.UNDECIDED
    reason: Reason | None = None
    sources: list[str] | None = None
    blocked_by: str | None = None
    claim: str | None = None
    grounded: bool | None = None
    penalized: bool = False
    provenance: str | None = None
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


COMPLETE, INCOMPLETE = "complete", "incomplete"
_UNKNOWN_SCORE = Score(value=None, low=0.0, high=1.0)


def score_differences(result: Mapping[str, Any]) -> Iterator[ReplayDifference]:
    """Yield the figures that differ from the recomputation.

    Raises:
        NotRecomputable: the result has no tree, or one that cannot be scored.
    """
    root = tree_of(result)
    try:
        yield from _figures(result, root)
        yield from _nodes(root)
    except RubricError as error:
        raise NotRecomputable(str(error)) from error


def _figures(result: Mapping[str, Any], root: RecordedNode) -> Iterator[ReplayDifference]:
    leaves = list(leaves_below(root))
    is_whole = not may_lack_parts(result)
    unjudged = any(leaf.outcome is Outcome.NOT_JUDGED or leaf.low != leaf.high for leaf in leaves)
    figures: dict[str, Any] = {
        "final_score": score_nodes(root, _settled_leaf)[id(root)].score,
        "status": INCOMPLETE if unjudged or not is_whole else COMPLETE,
        "score": _score_json(result, root, leaves, strict=False, is_whole=is_whole),
        "score_strict": _score_json(result, root, leaves, strict=True, is_whole=is_whole),
        "tree_statistics": asdict(statistics(root)),
    }
    if is_whole and (has_penalties(root) or any(leaf.penalized for leaf in leaves)):
        figures["score_unclipped"] = score_json(bounds(root, _intervals(root, leaves), unclipped_score))
    for name, recomputed in figures.items():
        recorded = result.get(name)
        if not is_whole and _same(recorded, asdict(_UNKNOWN_SCORE)):
            continue  # a claim that the tree does not contain was not judged
        if not _same(recorded, recomputed):
            yield ReplayDifference(where=name, recorded=recorded, recomputed=recomputed)


def _nodes(root: RecordedNode) -> Iterator[ReplayDifference]:
    """Check score and status of inner nodes against their children."""
    settled = score_nodes(root, _settled_leaf)
    for node in walk(root):
        now = settled[id(node)]
        score = max(0.0, now.score)
        if (node.score, node.status) != (score, now.status):
            yield ReplayDifference(
                where=f"node {node.id}",
                recorded={"score": node.score, "status": node.status.value},
                recomputed={"score": score, "status": now.status.value},
            )


def _settled_leaf(leaf: RecordedNode) -> NodeScore:
    """Return the compatible score and status of a leaf: from its verdict, or as the public script set them."""
    if leaf.low is not None:
        return NodeScore(leaf.score, leaf.status)
    return compatible_score(Verdict(outcome=leaf.outcome, penalized=leaf.penalized))


def _score_json(
    result: Mapping[str, Any], root: RecordedNode, leaves: list[RecordedNode], *, strict: bool, is_whole: bool
) -> dict[str, Any]:
    if is_whole and not root.children and (result.get("script") or {}).get("kind") == JudgeKind.NATIVE:
        return score_json(None)
    return score_json(_score_bounds(root, leaves, strict=strict, is_whole=is_whole))


def _intervals(
    root: RecordedNode, leaves: list[RecordedNode], *, strict: bool = False
) -> Callable[[RecordedNode], tuple[float, float]]:
    """Return the function that returns the bounds of a leaf. In the strict score, penalties count in any case."""
    unknown = unknown_leaves({leaf.id: Verdict(outcome=leaf.outcome, blocked_by=leaf.blocked_by) for leaf in leaves})
    penalties = penalty_leaves(root)

    def interval(leaf: RecordedNode) -> tuple[float, float]:
        is_weak = leaf.grounded is False or leaf.provenance == SUPPLIED
        if strict and leaf.outcome is Outcome.PASSED and is_weak and id(leaf) not in penalties:
            return 0.0, 0.0
        if leaf.low is not None and leaf.high is not None:
            return leaf.low, leaf.high
        if leaf.id in unknown:
            return 0.0, 1.0
        points = _settled_leaf(leaf).score
        return points, points

    return interval


def _score_bounds(root: RecordedNode, leaves: list[RecordedNode], *, strict: bool, is_whole: bool) -> Score:
    interval = _intervals(root, leaves, strict=strict)
    # The score of an incomplete tree is known only if a critical leaf directly below the root cannot pass.
    is_settled = any(child.critical and not child.children and max_score(child) < 1.0 for child in root.children)
    return bounds(root, interval) if is_whole or is_settled else _UNKNOWN_SCORE


def max_score(leaf: RecordedNode) -> float:
    """Return the highest possible score of a leaf."""
    if leaf.high is not None:
        return leaf.high
    return 1.0 if leaf.outcome is Outcome.NOT_JUDGED else compatible_score(Verdict(outcome=leaf.outcome)).score


def _same(recorded: Any, recomputed: Any) -> bool:
    """Return whether values are exactly equal. Of a mapping only the recomputed keys are compared."""
    if isinstance(recomputed, dict):
        return isinstance(recorded, Mapping) and all(recorded.get(name) == value for name, value in recomputed.items())
    return bool(recorded == recomputed)


_SHOWN_CHARS = 120
_LOST_VOTES = (Reason.LLM_UNAVAILABLE, Reason.LLM_OUTPUT_UNUSABLE, Reason.NO_MAJORITY)
Ballot: TypeAlias = tuple[bool, str]
"""Result of a vote, and the model that gave it."""


def inconsistent_leaves(root: RecordedNode, text_of: Callable[[str], str | None]) -> Iterator[ReplayDifference]:
    """Yield the leaves whose votes or quotes contradict their outcome.

    ``text_of`` returns the text of a page by its id, or None if it is unavailable; its quotes are then not checked.
    """
    for leaf in leaves_below(root):
        yield from _check_votes(leaf)
        yield from _check_grounds(leaf)
        for quote in leaf.quotes:
            if quote.origin == QuoteOrigin.TEXT:
                yield from _check_quote(leaf, quote, text_of(quote.page_id))


def _check_votes(leaf: RecordedNode) -> Iterator[ReplayDifference]:
    """Check the outcome of a leaf against its votes, and the outcome of a jury against its members.

    Votes of several sources or jury members are in one list. A source that supports the claim decides alone.
    """
    cast = [vote.result for vote in leaf.votes if vote.result is not None]
    yes, no = cast.count(True), cast.count(False)
    wrong = False
    if leaf.jury:
        yes, no = ([member.outcome for member in leaf.jury].count(o) for o in (Outcome.PASSED, Outcome.FAILED))
    if leaf.outcome is Outcome.PASSED:
        wrong = yes <= no if cast else leaf.claim is not None and leaf.low is None
    elif leaf.outcome is Outcome.FAILED:
        wrong = (no == 0 if leaf.jury else no <= yes) if cast else leaf.reason is Reason.REFUTED
    elif leaf.outcome is Outcome.NOT_JUDGED:
        wrong = leaf.reason in _LOST_VOTES and None not in [vote.result for vote in leaf.votes] and not leaf.jury
    if wrong:
        yield ReplayDifference(where=f"votes of leaf {leaf.id}", recorded=leaf.outcome.value, recomputed=cast)


def _check_grounds(leaf: RecordedNode) -> Iterator[ReplayDifference]:
    """Check the fields that decide how a supported claim counts: grounding, bounds and reasons without votes."""
    if leaf.outcome is Outcome.PASSED and leaf.claim is not None and leaf.low is None:
        needs_page = leaf.sources is not None
        if leaf.grounded is (None if needs_page else False) or (leaf.grounded and not leaf.quotes):
            yield ReplayDifference(
                where=f"grounded of leaf {leaf.id}", recorded=leaf.grounded, recomputed=f"{len(leaf.quotes)} quotes"
            )
    if leaf.outcome is Outcome.FAILED and leaf.low is None:
        has_check = leaf.claim is None
        if (leaf.reason is Reason.NO_SOURCE and leaf.sources) or (leaf.reason is Reason.CHECK_FALSE and not has_check):
            yield ReplayDifference(
                where=f"reason of leaf {leaf.id}", recorded=leaf.reason.value, recomputed=leaf.sources or leaf.claim
            )
    points = {Outcome.PASSED: 1.0, Outcome.FAILED: 0.0}.get(leaf.outcome)
    bounds = (leaf.low, leaf.score, leaf.high)
    if points is not None and leaf.votes and leaf.low is not None and bounds != (points,) * 3:
        yield ReplayDifference(where=f"bounds of leaf {leaf.id}", recorded=bounds, recomputed=points)


def unmatched_replies(
    root: RecordedNode, replies: Mapping[str, Counter[Ballot]], *, is_native: bool
) -> Iterator[ReplayDifference]:
    """Yield the votes that no recorded reply gives, and the replies that no leaf counts.

    ``replies`` are the usable replies to each claim, by the claim as it was shown to the model. Public scripts may
    judge claims that are not in their tree, and their leaves have bounds.
    """
    leaves: dict[str, list[RecordedNode]] = defaultdict(list)
    for leaf in leaves_below(root):
        if is_native and not leaf.low is leaf.high is None:
            yield ReplayDifference(where=f"bounds of leaf {leaf.id}", recorded=(leaf.low, leaf.high), recomputed=None)
        if leaf.claim is not None:
            leaves[neutralise(leaf.claim)].append(leaf)
        elif any(vote.result is not None for vote in leaf.votes):
            yield ReplayDifference(where=f"votes of leaf {leaf.id}", recorded="votes", recomputed="no claim")
    for claim, recorded in replies.items():
        if claim not in leaves and not is_native:
            continue
        if claim not in leaves:
            yield ReplayDifference(
                where="a leaf of the tree", recorded="not in the tree", recomputed=f"replies to {claim[:_SHOWN_CHARS]}"
            )
            continue
        counted = {ballot for leaf in leaves[claim] for ballot in _ballots(leaf)}
        is_partly_counted = any(
            leaf.outcome in (Outcome.PASSED, Outcome.SKIPPED, Outcome.UNDECIDED)
            or leaf.reason in (Reason.TIMEOUT, Reason.BUDGET)
            for leaf in leaves[claim]
        )  # another source decided, or judging ended early: other replies are not counted
        if not is_partly_counted and not recorded.keys() <= counted:
            yield ReplayDifference(
                where=f"votes of leaf {leaves[claim][0].id}", recorded=sorted(counted), recomputed=_listed(recorded)
            )
    for claim, of_claim in leaves.items():
        known = replies.get(claim, Counter())
        for leaf in of_claim:
            if not _ballots(leaf) <= known:
                yield ReplayDifference(
                    where=f"votes of leaf {leaf.id}", recorded=_listed(_ballots(leaf)), recomputed=_listed(known)
                )


def _ballots(leaf: RecordedNode) -> Counter[Ballot]:
    return Counter((vote.result, vote.model) for vote in leaf.votes if vote.result is not None)


def _listed(ballots: Counter[Ballot]) -> str:
    return ", ".join(f"{count} {result} of {model}" for (result, model), count in sorted(ballots.items())) or "none"


def _check_quote(leaf: RecordedNode, quote: Quote, text: str | None) -> Iterator[ReplayDifference]:
    if text is None:
        return
    passage = text[quote.start : quote.end] if 0 <= quote.start <= quote.end else ""
    if passage != quote.text:
        yield ReplayDifference(
            where=f"quote of leaf {leaf.id} in page {quote.page_id}",
            recorded=quote.text[:_SHOWN_CHARS],
            recomputed=passage[:_SHOWN_CHARS],
        )


_FIGURES = (
    "status", "final_score", "score", "score_strict", "score_unclipped", "tree_statistics", "task_id", "agent_name",
    "answer_name", "prompts", "script", "answer_sha256", "extraction_error", "cut_short",
)  # fmt: skip
_NODE_FIELDS = (
    "id", "desc", "critical", "weight", "strategy", "score", "status", "outcome", "reason", "claim", "instruction",
    "sources", "blocked_by", "grounded", "low", "high", "support", "unsupported", "requires", "check", "quotes",
    "page_digests", "prompt", "model", "grounding", "signals", "penalized",
    "provenance",
)  # fmt: skip


def rejudged_differences(recorded: Mapping[str, Any], judged: Mapping[str, Any]) -> Iterator[ReplayDifference]:
    """Yield differences of nodes from the root down, then of figures.

    An early difference is usually the cause of later ones.
    """
    before, after = (_trees(result) for result in (recorded, judged))
    if len(before) != len(after):
        yield ReplayDifference(where="number of trees", recorded=len(before), recomputed=len(after))
    for tree, new_tree in zip(before, after, strict=False):
        yield from _node_differences(tree, new_tree)
    for name in _FIGURES:
        if recorded.get(name) != judged.get(name):
            yield ReplayDifference(
                where=f"judged again, {name}", recorded=recorded.get(name), recomputed=judged.get(name)
            )


def _trees(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _mappings(part.get("verification_tree") for part in _mappings(result.get("eval_breakdown")))


def _mappings(values: object) -> list[Mapping[str, Any]]:
    """Return the values that are mappings. One of the two results is untrusted."""
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, Iterable) else []


def _node_differences(node: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[ReplayDifference]:
    location = f"judged again, node {node.get('id')}"
    for name in _NODE_FIELDS:
        if node.get(name) != new.get(name):
            yield ReplayDifference(where=f"{location}, {name}", recorded=node.get(name), recomputed=new.get(name))
    votes = [[(vote.get("result"), vote.get("model")) for vote in _mappings(side.get("votes"))] for side in (node, new)]
    if votes[0] != votes[1]:
        yield ReplayDifference(where=f"{location}, votes", recorded=votes[0], recomputed=votes[1])
    children = [_mappings(side.get("children")) for side in (node, new)]
    if len(children[0]) != len(children[1]):
        ids = [[child.get("id") for child in each] for each in children]
        yield ReplayDifference(where=f"{location}, children", recorded=ids[0], recomputed=ids[1])
    for child, new_child in zip(*children, strict=False):
        yield from _node_differences(child, new_child)
