"""Effect of one verdict: the score of a result if one leaf had the opposite outcome. Pure; needs numpy.

Scores follow the rules of the rubric, including gates. If the inverted leaf opens a gate, the outcome of the
leaves that the gate skipped is unknown, so the score has bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.analysis.overrides import JudgedNode, judged_tree, vote_counts
from judges.analysis.sensitivity.variants import ScoredTree
from rubrics.scoring import Score, bounded_score
from rubrics.tree import leaves_below, walk
from rubrics.verdict import Outcome

MAX_LEAVES = 1_000
"""In a larger tree only the leaves with the largest possible effect are inverted."""
_BATCH = 250
"""Inversions computed at a time; bounds the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversion:
    """Effect of changing one leaf from ``outcome`` to ``to``. ``yes`` and ``no`` count its votes.

    ``low_change`` and ``high_change`` are the changes of the score if every unknown leaf fails, and if every one
    passes, in ascending order.
    """

    key: str
    desc: str
    outcome: Outcome
    to: Outcome
    score: Score
    low_change: float
    high_change: float
    yes: int
    no: int

    @property
    def largest_change(self) -> float:
        """The largest absolute change."""
        return max(abs(self.low_change), abs(self.high_change))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inversions:
    """Score of a result, the inversions that change it (largest change first), and the number of leaves without effect.

    ``left_out`` counts leaves that were not tried.
    """

    score: Score
    inversions: tuple[Inversion, ...]
    without_effect: int
    left_out: int


def invert_leaves(result: Mapping[str, Any]) -> Inversions | None:
    """Invert the outcome of every leaf, one at a time. Returns None if the result has no tree.

    Raises:
        InvalidNode: a weight is not a finite number above zero.
    """
    root = judged_tree(result)
    if root is None:
        return None
    shares = _score_shares(root)
    leaves = sorted(leaves_below(root), key=lambda leaf: -shares[leaf.key])
    tried = [(leaf, outcome) for leaf in leaves[:MAX_LEAVES] for outcome in _OPPOSITES[leaf.outcome]]
    current, *scores = _scores(root, [{}, *({leaf.key: outcome is Outcome.PASSED} for leaf, outcome in tried)])
    all_inversions = [
        _inversion(leaf, outcome, score, current) for (leaf, outcome), score in zip(tried, scores, strict=True)
    ]
    effective = sorted(
        (inversion for inversion in all_inversions if inversion.largest_change > 0),
        key=lambda inversion: (-inversion.largest_change, inversion.key),
    )
    return Inversions(
        score=current,
        inversions=tuple(effective),
        without_effect=min(len(leaves), MAX_LEAVES) - len({inversion.key for inversion in effective}),
        left_out=max(0, len(leaves) - MAX_LEAVES),
    )


_OPPOSITES = {
    Outcome.PASSED: (Outcome.FAILED,),
    Outcome.FAILED: (Outcome.PASSED,),
    Outcome.UNDECIDED: (Outcome.PASSED,),
    Outcome.SKIPPED: (Outcome.PASSED, Outcome.FAILED),
    Outcome.NOT_JUDGED: (Outcome.PASSED, Outcome.FAILED),
}
"""Outcomes to try for a leaf: the opposite one, or both if it was not judged. ``undecided`` counts as failed."""


def _scores(root: JudgedNode, overrides: Sequence[Mapping[str, bool]]) -> Iterator[Score]:
    tree = ScoredTree(root)
    for start in range(0, len(overrides), _BATCH):
        lows, highs = tree.judged(overrides[start : start + _BATCH])
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
            yield bounded_score(low, high)


def _inversion(leaf: JudgedNode, to: Outcome, score: Score, current: Score) -> Inversion:
    low_change, high_change = sorted((score.low - current.low, score.high - current.high))
    yes, no = vote_counts(leaf)
    return Inversion(
        key=leaf.key,
        desc=str(leaf.data.get("desc") or ""),
        outcome=leaf.outcome,
        to=to,
        score=score,
        low_change=low_change,
        high_change=high_change,
        yes=yes,
        no=no,
    )


def _score_shares(root: JudgedNode) -> Mapping[str, float]:
    """Return the maximum share of the total score of each node. A critical node has the full share of its parent."""
    shares = {root.key: 1.0}
    for node in walk(root):
        total = sum(child.weight for child in node.children if not child.critical)
        for child in node.children:
            shares[child.key] = shares[node.key] * (1.0 if child.critical else child.weight / total)
    return shares
