"""Scoring of a rubric: the score by the rules of the public toolkit, with bounds for unknown leaves.

Pure functions over any ``TreeNode``. The same rules compute the compatible score and status of every node
(``score_nodes``), the score of the tree (``tree_score``) and its bounds if leaves are unknown (``bounds``).

A node with a negative weight is a penalty: its score is subtracted, and the score of its group is clipped to 0..1.
``Rubric.add`` keeps penalties apart from gates, so ``tree_score`` is monotone: it falls with the leaves of penalties
and rises with all others. The bounds are therefore exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rubrics.rubric import InvalidNode, Rubric
from rubrics.tree import N, RubricNode, Status, Strategy, TreeNode, leaves_below, walk
from rubrics.verdict import Outcome, Verdict

FULL_SCORE = 1.0 - 1e-6
"""Score from which an answer is a success in all figures, as in the ``metrics.json`` of the public toolkit.

Gates are exact: a child with a score below 1.0 closes them.
"""
_THRESHOLD_TOLERANCE = 1e-9
_JUST_BELOW_ONE = math.nextafter(1.0, 0.0)
_MOST = 1e9
"""Limit of an unclipped score, because weights may differ by hundreds of orders of magnitude."""


class NodeScore(NamedTuple):
    """Compatible score (0 to 1; -1 for a penalized leaf) and status of one node."""

    score: float
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Score from 0 to 1 with its bounds. ``value`` is None while unknown leaves could change it."""

    value: float | None
    low: float
    high: float

    def minus(self, before: Score) -> Score:
        """Return the difference to an earlier score, from -1 to 1, with its bounds."""
        certain = self.value is not None and before.value is not None
        return Score(
            value=self.low - before.low if certain else None, low=self.low - before.high, high=self.high - before.low
        )


def is_success(score: float) -> bool:
    """Return whether the score of an answer is a full score."""
    return score >= FULL_SCORE


def reaches(figure: float, threshold: float) -> bool:
    """Return whether a figure is at least ``threshold``, with a tolerance of 1e-9 for the rounding of floats.

    >>> (0.6 + 0.8 + 1.0) / 3 >= 0.8, reaches((0.6 + 0.8 + 1.0) / 3, 0.8)
    (False, True)
    """
    return figure >= threshold - _THRESHOLD_TOLERANCE


def bounded_score(low: float, high: float) -> Score:
    """Return the score with these bounds."""
    return Score(value=low if low == high else None, low=low, high=high)


def score_nodes(root: N, leaf: Callable[[N], NodeScore]) -> dict[int, NodeScore]:
    """Return score and status of every node. ``leaf`` returns those of a leaf.

    The keys are ``id(node)`` and not the ids of the nodes, because a public task script can create two nodes with the
    same id.

    Raises:
        InvalidNode: A weight is 0 or not finite.
    """
    scores: dict[int, NodeScore] = {}
    _score_node(root, leaf, scores)
    return scores


def _score_node(node: N, leaf: Callable[[N], NodeScore], scores: dict[int, NodeScore]) -> None:
    if not node.children:
        scores[id(node)] = leaf(node)
        return
    for child in node.children:
        if child.children:
            _score_node(child, leaf, scores)
        else:
            scores[id(child)] = leaf(child)
    if node.strategy == Strategy.SEQUENTIAL:
        _skip_after_first_miss(node, scores)
    score = _inner_score(node.children, scores)
    statuses = [scores[id(each)].status if each.weight > 0 else _status(scores[id(each)]) for each in node.children]
    scores[id(node)] = NodeScore(score, _inner_status(score, statuses))


def _skip_after_first_miss(node: N, scores: dict[int, NodeScore]) -> None:
    """Set each step after the first one below 1.0 to 0. The nodes below such a step keep their scores."""
    missed = False
    for child in node.children:
        if missed:
            scores[id(child)] = NodeScore(min(0.0, scores[id(child)].score), Status.SKIPPED)
        missed = missed or scores[id(child)].score < 1.0


def _inner_score(children: Sequence[TreeNode], scores: Mapping[int, NodeScore]) -> float:
    return max(0.0, _unclipped(children, scores))


def _unclipped(children: Sequence[TreeNode], scores: Mapping[int, NodeScore]) -> float:
    """Return the score of a group before it is clipped. A closed gate does not excuse a penalty."""
    is_closed = any(child.critical and scores[id(child)].score < 1.0 for child in children)
    if is_closed and all(child.weight > 0.0 <= scores[id(child)].score for child in children):
        return 0.0
    pairs = [(_weight(child), scores[id(child)].score) for child in children if not child.critical]
    if not is_closed and all(weight > 0.0 <= score for weight, score in pairs):
        return _weighted_mean(pairs)
    credit = 0.0 if is_closed else 1.0
    pairs = [(weight, max(0.0, points) if weight < 0 else min(credit, points)) for weight, points in pairs]
    return _mean_less_penalties(pairs, credit if len(pairs) < len(children) else 0.0)


def _weight(node: TreeNode) -> float:
    if not math.isfinite(node.weight) or node.weight == 0:
        raise InvalidNode(f"node {node.id!r}: weight {node.weight!r} is 0 or not finite; use another number")
    return node.weight


def _weighted_mean(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the mean of (weight, score) pairs. It is exactly 1.0 if and only if no score is below 1.0."""
    if all(score == 1.0 for _, score in pairs):
        return 1.0
    total = sum(weight for weight, _ in pairs)
    if math.isinf(total):
        return _weighted_mean(_scaled(pairs))
    mean = sum(weight * score for weight, score in pairs) / total
    # A failed leaf with a tiny weight must not disappear by rounding: 1.0 means passed and satisfies critical gates.
    return min(mean, _JUST_BELOW_ONE)


def _mean_less_penalties(pairs: Sequence[tuple[float, float]], credit: float) -> float:
    """Return the mean of (weight, score) pairs, less the penalties. ``credit`` is the mean without positive weights.

    It is exactly 1.0 if and only if no score is below 1.0 and no penalty above 0.0.
    """
    if math.isinf(sum(abs(weight) for weight, _ in pairs)):
        pairs = _scaled(pairs)
    if not any(weight > 0 for weight, _ in pairs):
        pairs = [*pairs, (sum(-weight for weight, _ in pairs), credit)]
    if all(score == (weight > 0) for weight, score in pairs):
        return 1.0
    mean = sum(weight * score for weight, score in pairs) / sum(weight for weight, _ in pairs if weight > 0)
    return min(max(mean, -_MOST), _JUST_BELOW_ONE)


def _scaled(pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the pairs with weights whose sum is finite."""
    largest = max(abs(weight) for weight, _ in pairs)
    return [(weight / largest, score) for weight, score in pairs]


def _status(penalty: NodeScore) -> Status:
    """Return the status of a penalty that counts for its group: one that applies has failed."""
    return Status.FAILED if penalty.score > 0.0 else penalty.status


def _inner_status(score: float, children: Sequence[Status]) -> Status:
    if score == 1.0:
        return Status.PASSED
    if score > 0.0:
        return Status.PARTIAL
    return Status.FAILED if Status.FAILED in children else Status.SKIPPED


def tree_score(root: N, leaf: Callable[[N], float]) -> float:
    """Return the score of a tree (0 to 1). ``leaf`` returns the score of a leaf.

    Raises:
        InvalidNode: A weight is 0 or not finite.
    """
    return score_nodes(root, lambda node: NodeScore(leaf(node), Status.INITIALIZED))[id(root)].score


def unclipped_score(root: N, leaf: Callable[[N], float]) -> float:
    """Return the score of a tree before the score of its root is clipped: at most 1, and negative with penalties."""
    scores = score_nodes(root, lambda node: NodeScore(leaf(node), Status.INITIALIZED))
    return _unclipped(root.children, scores) if root.children else scores[id(root)].score


def has_penalties(root: TreeNode) -> bool:
    """Return whether a node of the tree has a negative weight."""
    return any(node.weight < 0 for node in walk(root))


def penalty_leaves(root: N) -> frozenset[int]:
    """Return ``id(leaf)`` of the leaves of penalties: the higher they score, the lower ``root`` does."""
    found: set[int] = set()
    pending = [root]
    while pending:
        for child in pending.pop().children:
            if child.weight < 0:  # contains no further penalty
                found.update(map(id, leaves_below(child)))
            elif child.children:
                pending.append(child)
    return frozenset(found)


def score_with(
    path: Sequence[N], points: float, scores: Mapping[int, NodeScore], leaf: Callable[[N], NodeScore]
) -> float:
    """Return the score of a tree if one leaf had ``points``, without scoring the whole tree again.

    ``path`` leads from the root to the leaf. ``scores`` are those of ``score_nodes`` with ``leaf``.
    """
    changed = NodeScore(points, Status.INITIALIZED)
    for parent, child in zip(path[-2::-1], path[:0:-1], strict=True):
        if parent.strategy == Strategy.SEQUENTIAL:  # in ``scores``, the steps after the first missed one are 0
            siblings = {id(each): _own_score(each, scores, leaf) for each in parent.children}
            siblings[id(child)] = changed
            _skip_after_first_miss(parent, siblings)
        else:
            siblings = {id(each): scores[id(each)] for each in parent.children}
            siblings[id(child)] = changed
        changed = NodeScore(_inner_score(parent.children, siblings), Status.INITIALIZED)
    return changed.score


def _own_score(node: N, scores: Mapping[int, NodeScore], leaf: Callable[[N], NodeScore]) -> NodeScore:
    """Return the score of a node as if it were no step of a sequence."""
    return NodeScore(_inner_score(node.children, scores), Status.INITIALIZED) if node.children else leaf(node)


def bounds(
    root: N,
    leaf_bounds: Callable[[N], tuple[float, float]],
    scored: Callable[[N, Callable[[N], float]], float] = tree_score,
) -> Score:
    """Return the exact bounds of a tree's score. ``leaf_bounds`` returns (low, high) of a leaf.

    ``scored`` is ``tree_score`` or ``unclipped_score``.

    Raises:
        InvalidNode: A weight is 0 or not finite.
    """
    penalties = penalty_leaves(root)
    low = scored(root, lambda node: leaf_bounds(node)[id(node) in penalties])
    high = scored(root, lambda node: leaf_bounds(node)[id(node) not in penalties])
    return bounded_score(low, high)


_COMPATIBLE = {
    Outcome.PASSED: NodeScore(1.0, Status.PASSED),
    Outcome.FAILED: NodeScore(0.0, Status.FAILED),
    Outcome.SKIPPED: NodeScore(0.0, Status.SKIPPED),
    # The public toolkit has no third state. It counts a claim that could not be judged as failed.
    Outcome.NOT_JUDGED: NodeScore(0.0, Status.FAILED),
    Outcome.UNDECIDED: NodeScore(0.0, Status.INITIALIZED),
}


def compatible_score(verdict: Verdict | None) -> NodeScore:
    """Return the score and status that the public toolkit gives a leaf with this verdict. None means undecided.

    A penalized leaf, which the public toolkit does not have, scores -1.
    """
    if verdict is not None and verdict.penalized:
        return NodeScore(-1.0, Status.FAILED)
    return _COMPATIBLE[Outcome.UNDECIDED if verdict is None else verdict.outcome]


def unknown_leaves(verdicts: Mapping[str, Verdict | None]) -> frozenset[str]:
    """Return the ids of the leaves with an unknown outcome. ``verdicts`` maps leaf ids to verdicts.

    See ``is_unknown``.
    """
    return frozenset(leaf_id for leaf_id in verdicts if is_unknown(leaf_id, verdicts.get))


def is_unknown(leaf_id: str, verdict_of: Callable[[str], Verdict | None]) -> bool:
    """Return whether a leaf was not judged, or was skipped and its chain of ``blocked_by`` ends at such a leaf.

    ``blocked_by`` names a leaf that blocks for certain if there is one, see ``gating.first_blocker``.
    """
    seen: set[str] = set()
    current: str | None = leaf_id
    while current is not None and current not in seen:
        seen.add(current)
        verdict = verdict_of(current)
        if verdict is None or verdict.outcome is not Outcome.SKIPPED:
            return verdict is not None and verdict.outcome is Outcome.NOT_JUDGED
        current = verdict.blocked_by
    return False


def score(rubric: Rubric, node: RubricNode | None = None) -> Score:
    """Return the score of a rubric, or of a ``node`` of it, from the verdicts. Unknown leaves count from 0 to 1."""
    return bounds(node or rubric.root, _intervals(rubric))


def score_unclipped(rubric: Rubric) -> Score | None:
    """Return the score before it is clipped to 0..1; None if the rubric has no penalty."""
    is_penalized = any(leaf.verdict is not None and leaf.verdict.penalized for leaf in rubric.leaves())
    if not (is_penalized or has_penalties(rubric.root)):
        return None
    return bounds(rubric.root, _intervals(rubric), unclipped_score)


def score_strict(rubric: Rubric) -> Score:
    """Return the strict score: a passed leaf counts only if its verdict is grounded or grounding does not apply.

    Its evidence must be captured, not supplied by the agent.
    Penalties count in any case, so that the strict score is never above the score.
    """
    interval, penalties = _intervals(rubric), penalty_leaves(rubric.root)

    def strict(leaf: RubricNode) -> tuple[float, float]:
        low, high = interval(leaf)
        is_weak = leaf.verdict is not None and not counts_strictly(leaf.verdict) and id(leaf) not in penalties
        return (0.0, 0.0) if is_weak and low == high == 1.0 else (low, high)

    return bounds(rubric.root, strict)


def counts_strictly(verdict: Verdict) -> bool:
    """Return whether a passed leaf with this verdict counts in the strict score."""
    return verdict.grounded is not False and not verdict.supplied


def _intervals(rubric: Rubric) -> Callable[[RubricNode], tuple[float, float]]:
    """Return the function that returns the lowest and the highest score of a leaf."""
    unknown = unknown_leaves({leaf.id: leaf.verdict for leaf in rubric.leaves()})

    def interval(leaf: RubricNode) -> tuple[float, float]:
        points = compatible_score(leaf.verdict).score
        return (0.0, 1.0) if leaf.id in unknown else (points, points)

    return interval
