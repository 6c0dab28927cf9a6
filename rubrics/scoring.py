"""From settled leaves to a score: the public toolkit's number, and honest bounds around it.

Pure functions over any ``TreeNode``. The same rules give the compatible score and status of every
node (``settle``), the one number (``fold``) and, where leaves are unknown, the interval in which the
number lies (``bounds``). Folding is monotone in every leaf, so the bounds are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rubrics.errors import InvalidNode
from rubrics.node import RubricNode, Status, Strategy
from rubrics.rubric import Rubric
from rubrics.tree import N, TreeNode
from rubrics.verdict import Outcome, Verdict

_JUST_BELOW_ONE = math.nextafter(1.0, 0.0)


class Settled(NamedTuple):
    """The compatible score, 0 to 1, and status of one node."""

    score: float
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score between 0 and 1; ``value`` is None while unknown leaves could still change it."""

    value: float | None
    low: float
    high: float


def settle(root: N, leaf: Callable[[N], tuple[float, Status]]) -> dict[int, Settled]:
    """Score and status of every node, by ``id(node)``; leaves keep what the callback says of them.

    Keyed by identity, not by the node's own id: a public judge script can build two nodes with one id.

    Raises:
        InvalidNode: a weight that is not a finite number above zero.
    """
    settled: dict[int, Settled] = {}
    _settle(root, leaf, settled)
    return settled


def _settle(node: N, leaf: Callable[[N], tuple[float, Status]], settled: dict[int, Settled]) -> None:
    if not node.children:
        settled[id(node)] = Settled(*leaf(node))
        return
    for child in node.children:
        _settle(child, leaf, settled)
    if node.strategy == Strategy.SEQUENTIAL:
        _skip_after_first_miss(node, settled)
    score = _inner_score(node.children, settled)
    settled[id(node)] = Settled(score, _inner_status(score, [settled[id(each)].status for each in node.children]))


def _skip_after_first_miss(node: N, settled: dict[int, Settled]) -> None:
    """Zero each step after the first one below 1.0; what is under such a step keeps its own numbers."""
    missed = False
    for child in node.children:
        if missed:
            settled[id(child)] = Settled(0.0, Status.SKIPPED)
        missed = missed or settled[id(child)].score < 1.0


def _inner_score(children: Sequence[TreeNode], settled: Mapping[int, Settled]) -> float:
    if any(child.critical and settled[id(child)].score < 1.0 for child in children):
        return 0.0
    counted = [child for child in children if not child.critical]
    return _weighted_mean([(_weight(child), settled[id(child)].score) for child in counted])


def _weight(node: TreeNode) -> float:
    if not (math.isfinite(node.weight) and node.weight > 0):
        raise InvalidNode(f"node {node.id!r}: weight {node.weight!r} is not a finite number above zero")
    return node.weight


def _weighted_mean(pairs: Sequence[tuple[float, float]]) -> float:
    """The mean of (weight, score) pairs, exactly 1.0 if and only if no score is below 1.0."""
    if all(score == 1.0 for _, score in pairs):
        return 1.0
    total = sum(weight for weight, _ in pairs)
    if math.isinf(total):
        largest = max(weight for weight, _ in pairs)
        pairs = [(weight / largest, score) for weight, score in pairs]
        total = sum(weight for weight, _ in pairs)
    mean = sum(weight * score for weight, score in pairs) / total
    # A tiny weight must not round a missed leaf away: 1.0 means passed and opens critical gates.
    return min(mean, _JUST_BELOW_ONE)


def _inner_status(score: float, children: Sequence[Status]) -> Status:
    if score == 1.0:
        return Status.PASSED
    if score > 0.0:
        return Status.PARTIAL
    return Status.FAILED if Status.FAILED in children else Status.SKIPPED


def fold(root: N, leaf: Callable[[N], float]) -> float:
    """The score of a tree, 0 to 1, from a score for each leaf.

    Raises:
        InvalidNode: a weight that is not a finite number above zero.
    """
    return settle(root, lambda node: (leaf(node), Status.INITIALIZED))[id(root)].score


def bounds(root: N, leaf_bounds: Callable[[N], tuple[float, float]]) -> Score:
    """The exact interval of a tree's score when each leaf lies somewhere within its own (low, high).

    Raises:
        InvalidNode: a weight that is not a finite number above zero.
    """
    low = fold(root, lambda node: leaf_bounds(node)[0])
    high = fold(root, lambda node: leaf_bounds(node)[1])
    return Score(value=low if low == high else None, low=low, high=high)


_COMPATIBLE = {
    Outcome.PASSED: Settled(1.0, Status.PASSED),
    Outcome.FAILED: Settled(0.0, Status.FAILED),
    Outcome.SKIPPED: Settled(0.0, Status.SKIPPED),
    # The public toolkit knows no third state: there a fault of the judge is a failed claim.
    Outcome.NOT_JUDGED: Settled(0.0, Status.FAILED),
    Outcome.UNDECIDED: Settled(0.0, Status.INITIALIZED),
}


def compatible(verdict: Verdict | None) -> Settled:
    """The score and status the public toolkit would give a leaf with this verdict; None is undecided."""
    return _COMPATIBLE[Outcome.UNDECIDED if verdict is None else verdict.outcome]


def unknown_leaves(verdicts: Mapping[str, Verdict | None]) -> frozenset[str]:
    """The ids of leaves about which nothing is known, from the verdict of each leaf by its id.

    Those are the leaves that were not judged, and the skipped ones whose chain of ``blocked_by``
    ends at one of those.
    """
    return frozenset(leaf_id for leaf_id in verdicts if _is_unknown(leaf_id, verdicts))


def _is_unknown(leaf_id: str, verdicts: Mapping[str, Verdict | None]) -> bool:
    seen: set[str] = set()
    current: str | None = leaf_id
    while current is not None and current not in seen:
        seen.add(current)
        verdict = verdicts.get(current)
        if verdict is None or verdict.outcome is not Outcome.SKIPPED:
            return verdict is not None and verdict.outcome is Outcome.NOT_JUDGED
        current = verdict.blocked_by
    return False


def score(rubric: Rubric) -> Score:
    """The score of a rubric from the verdicts on its leaves; unknown leaves may be anything from 0 to 1."""
    return _score(rubric, lambda verdict: True)


def score_strict(rubric: Rubric) -> Score:
    """The same, but a passed leaf counts only when its verdict is grounded or grounding does not apply."""
    return _score(rubric, lambda verdict: verdict.grounded is not False)


def _score(rubric: Rubric, accept: Callable[[Verdict], bool]) -> Score:
    unknown = unknown_leaves({leaf.id: leaf.verdict for leaf in rubric.leaves()})

    def interval(leaf: RubricNode) -> tuple[float, float]:
        if leaf.id in unknown:
            return 0.0, 1.0
        verdict = leaf.verdict
        points = compatible(verdict).score if verdict is not None and accept(verdict) else 0.0
        return points, points

    return bounds(rubric.root, interval)
