"""Every figure of a result that follows from its tree, worked out again from the verdicts on the leaves alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from judges.analysis.replay.difference import Difference, NotRecomputable
from judges.analysis.replay.tree import RecordedNode, tree_of
from rubrics.errors import RubricError
from rubrics.scoring import Score, Settled, bounds, compatible, settle, unknown_leaves
from rubrics.tree import leaves_below, statistics
from rubrics.verdict import Outcome, Verdict

COMPLETE, INCOMPLETE = "complete", "incomplete"
_NOTHING_KNOWN = Score(value=None, low=0.0, high=1.0)


def differences(result: Mapping[str, Any]) -> Iterator[Difference]:
    """Where a result says something else than comes out of its tree; nothing where it is equal throughout.

    Raises:
        NotRecomputable: it has no tree, or one that no score can be made of.
    """
    root = tree_of(result)
    try:
        yield from _figures(result, root)
        yield from _nodes(root)
    except RubricError as error:
        raise NotRecomputable(str(error)) from error


def _figures(result: Mapping[str, Any], root: RecordedNode) -> Iterator[Difference]:
    leaves = list(leaves_below(root))
    is_whole = result.get("extraction_error") is None and result.get("cut_short") is None
    unjudged = any(leaf.outcome is Outcome.NOT_JUDGED for leaf in leaves)
    figures: dict[str, Any] = {
        "final_score": settle(root, _public)[id(root)].score,
        "status": INCOMPLETE if unjudged or not is_whole else COMPLETE,
        "score": asdict(_range(root, leaves, strict=False, is_whole=is_whole)),
        "score_strict": asdict(_range(root, leaves, strict=True, is_whole=is_whole)),
        "tree_statistics": asdict(statistics(root)),
    }
    for name, recomputed in figures.items():
        recorded = result.get(name)
        if not _same(recorded, recomputed):
            yield Difference(where=name, recorded=recorded, recomputed=recomputed)


def _nodes(root: RecordedNode) -> Iterator[Difference]:
    """Inner nodes whose written score or status is not that of their children."""
    settled = settle(root, _public)
    for node in root.walk():
        now = settled[id(node)]
        if (node.score, node.status) != (now.score, now.status):
            yield Difference(
                where=f"node {node.id}",
                recorded={"score": node.score, "status": node.status.value},
                recomputed={"score": now.score, "status": now.status.value},
            )


def _public(leaf: RecordedNode) -> Settled:
    """Score and status of a leaf in the public number: by its verdict, or as the public script left it."""
    if leaf.low is not None:
        return Settled(leaf.score, leaf.status)
    score, status = compatible(Verdict(outcome=leaf.outcome))
    return Settled(score, status)


def _range(root: RecordedNode, leaves: list[RecordedNode], *, strict: bool, is_whole: bool) -> Score:
    verdicts = {leaf.id: Verdict(outcome=leaf.outcome, blocked_by=leaf.blocked_by) for leaf in leaves}
    unknown = unknown_leaves(verdicts)

    def interval(leaf: RecordedNode) -> tuple[float, float]:
        if strict and leaf.outcome is Outcome.PASSED and leaf.grounded is False:
            return 0.0, 0.0
        if leaf.low is not None and leaf.high is not None:
            return leaf.low, leaf.high
        if leaf.id in unknown:
            return 0.0, 1.0
        points = compatible(verdicts[leaf.id]).score
        return points, points

    found = bounds(root, interval)
    if is_whole or found.value is None:
        return found
    # Not the whole tree: its number is certain only where a gate directly below the root is shut for good.
    shut = any(child.critical and not child.children and interval_high(child) < 1.0 for child in root.children)
    return found if shut else _NOTHING_KNOWN


def interval_high(leaf: RecordedNode) -> float:
    """What a leaf may count at most."""
    if leaf.high is not None:
        return leaf.high
    return 1.0 if leaf.outcome is Outcome.NOT_JUDGED else compatible(Verdict(outcome=leaf.outcome)).score


def _same(recorded: Any, recomputed: Any) -> bool:
    """Equal to the last bit; of a mapping every figure that was worked out."""
    if isinstance(recomputed, dict):
        return isinstance(recorded, Mapping) and all(recorded.get(name) == value for name, value in recomputed.items())
    return bool(recorded == recomputed)
