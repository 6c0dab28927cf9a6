"""Effect of one verdict: the score of a result if one leaf had the opposite outcome. Pure; needs numpy.

Scores follow the rules of the rubric, including gates. If a flipped leaf opens a gate, the outcome of the
leaves that the gate skipped is unknown, so the score has bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.analysis.overrides import JudgedNode, judged_tree, vote_counts
from judges.analysis.sensitivity.variants import ScoredTree
from rubrics.scoring import Score
from rubrics.tree import leaves_below, walk
from rubrics.verdict import Outcome

MAX_LEAVES = 1_000
"""In a larger tree only the leaves with the largest possible effect are flipped."""
_BATCH = 250
"""Flips computed at a time; bounds the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """Effect of flipping one leaf from ``outcome`` to ``to``. ``yes`` and ``no`` count its votes.

    ``least`` and ``greatest`` are the changes of the score if every unknown leaf fails, and if every one passes, in
    ascending order.
    """

    key: str
    desc: str
    outcome: Outcome
    to: Outcome
    score: Score
    least: float
    greatest: float
    yes: int
    no: int

    @property
    def most(self) -> float:
        """The largest absolute change."""
        return max(abs(self.least), abs(self.greatest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """Score of a result, the flips that change it (largest change first), and the number of leaves without effect.

    ``left_out`` counts leaves that were not tried.
    """

    score: Score
    flips: tuple[Flip, ...]
    without_effect: int
    left_out: int


def flips(result: Mapping[str, Any]) -> Flips | None:
    """Flip every leaf of a result, one at a time. Returns None if the result has no tree.

    Raises:
        InvalidNode: a weight is not a finite number above zero.
    """
    root = judged_tree(result)
    if root is None:
        return None
    stakes = _stakes(root)
    leaves = sorted(leaves_below(root), key=lambda leaf: -stakes[leaf.key])
    tried = [(leaf, to) for leaf in leaves[:MAX_LEAVES] for to in _OPPOSITES[leaf.outcome]]
    now, *scores = _scores(root, [{}, *({leaf.key: to is Outcome.PASSED} for leaf, to in tried)])
    all_flips = [_flip(leaf, to, score, now) for (leaf, to), score in zip(tried, scores, strict=True)]
    effective = sorted((flip for flip in all_flips if flip.most > 0), key=lambda flip: (-flip.most, flip.key))
    return Flips(
        score=now,
        flips=tuple(effective),
        without_effect=min(len(leaves), MAX_LEAVES) - len({flip.key for flip in effective}),
        left_out=max(0, len(leaves) - MAX_LEAVES),
    )


_OPPOSITES = {
    Outcome.PASSED: (Outcome.FAILED,),
    Outcome.FAILED: (Outcome.PASSED,),
    Outcome.UNDECIDED: (Outcome.PASSED,),
    Outcome.SKIPPED: (Outcome.PASSED, Outcome.FAILED),
    Outcome.NOT_JUDGED: (Outcome.PASSED, Outcome.FAILED),
}
"""Outcomes that a leaf is flipped to: the opposite one, or both if it was not judged. ``undecided`` counts as failed.
"""


def _scores(root: JudgedNode, overrides: Sequence[Mapping[str, bool]]) -> Iterator[Score]:
    tree = ScoredTree(root)
    for start in range(0, len(overrides), _BATCH):
        lows, highs = tree.judged(overrides[start : start + _BATCH])
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
            yield Score(value=low if low == high else None, low=low, high=high)


def _flip(leaf: JudgedNode, to: Outcome, score: Score, now: Score) -> Flip:
    least, greatest = sorted((score.low - now.low, score.high - now.high))
    yes, no = vote_counts(leaf)
    return Flip(
        key=leaf.key,
        desc=str(leaf.data.get("desc") or ""),
        outcome=leaf.outcome,
        to=to,
        score=score,
        least=least,
        greatest=greatest,
        yes=yes,
        no=no,
    )


def _stakes(root: JudgedNode) -> Mapping[str, float]:
    """Return the maximum share of the total score of each node. A critical node has the full share of its parent."""
    stakes = {root.key: 1.0}
    for node in walk(root):
        total = sum(child.weight for child in node.children if not child.critical)
        for child in node.children:
            stakes[child.key] = stakes[node.key] * (1.0 if child.critical else child.weight / total)
    return stakes
