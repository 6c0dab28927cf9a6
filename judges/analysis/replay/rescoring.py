"""Recomputation of all figures of a result that follow from its tree, from the verdicts on the leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from judges.analysis.replay.difference import NotRecomputable, ReplayDifference
from judges.analysis.replay.tree import RecordedNode, tree_of
from rubrics.errors import RubricError
from rubrics.scoring import NodeScore, Score, bounds, compatible_score, score_nodes, unknown_leaves
from rubrics.tree import leaves_below, statistics
from rubrics.verdict import Outcome, Verdict

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
    is_whole = result.get("extraction_error") is None and result.get("cut_short") is None
    unjudged = any(leaf.outcome is Outcome.NOT_JUDGED for leaf in leaves)
    figures: dict[str, Any] = {
        "final_score": score_nodes(root, _settled_leaf)[id(root)].score,
        "status": INCOMPLETE if unjudged or not is_whole else COMPLETE,
        "score": asdict(_score_bounds(root, leaves, strict=False, is_whole=is_whole)),
        "score_strict": asdict(_score_bounds(root, leaves, strict=True, is_whole=is_whole)),
        "tree_statistics": asdict(statistics(root)),
    }
    for name, recomputed in figures.items():
        recorded = result.get(name)
        if not _same(recorded, recomputed):
            yield ReplayDifference(where=name, recorded=recorded, recomputed=recomputed)


def _nodes(root: RecordedNode) -> Iterator[ReplayDifference]:
    """Check score and status of inner nodes against their children."""
    settled = score_nodes(root, _settled_leaf)
    for node in root.walk():
        now = settled[id(node)]
        if (node.score, node.status) != (now.score, now.status):
            yield ReplayDifference(
                where=f"node {node.id}",
                recorded={"score": node.score, "status": node.status.value},
                recomputed={"score": now.score, "status": now.status.value},
            )


def _settled_leaf(leaf: RecordedNode) -> NodeScore:
    """Return the compatible score and status of a leaf: from its verdict, or as the public script set them."""
    if leaf.low is not None:
        return NodeScore(leaf.score, leaf.status)
    score, status = compatible_score(Verdict(outcome=leaf.outcome))
    return NodeScore(score, status)


def _score_bounds(root: RecordedNode, leaves: list[RecordedNode], *, strict: bool, is_whole: bool) -> Score:
    verdicts = {leaf.id: Verdict(outcome=leaf.outcome, blocked_by=leaf.blocked_by) for leaf in leaves}
    unknown = unknown_leaves(verdicts)

    def interval(leaf: RecordedNode) -> tuple[float, float]:
        if strict and leaf.outcome is Outcome.PASSED and leaf.grounded is False:
            return 0.0, 0.0
        if leaf.low is not None and leaf.high is not None:
            return leaf.low, leaf.high
        if leaf.id in unknown:
            return 0.0, 1.0
        points = compatible_score(verdicts[leaf.id]).score
        return points, points

    found = bounds(root, interval)
    if is_whole or found.value is None:
        return found
    # The tree is incomplete: its score is known only if a critical leaf directly below the root cannot pass.
    closed = any(child.critical and not child.children and max_score(child) < 1.0 for child in root.children)
    return found if closed else _UNKNOWN_SCORE


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
