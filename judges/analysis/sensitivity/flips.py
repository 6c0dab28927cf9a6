"""What one verdict is worth: the score of a result if one leaf had come out otherwise. Pure; needs numpy.

The rubric's own rules decide, gates included. A leaf that failed and shut a gate opens it when it is flipped: what lies
behind was never looked at, so the score then lies between bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judges.analysis.overrides import JudgedNode, judged_tree
from judges.analysis.sensitivity.leaf_votes import votes_of
from judges.analysis.sensitivity.variants import Ground
from rubrics.scoring import Score
from rubrics.tree import leaves_below, walk
from rubrics.verdict import Outcome

MOST_LEAVES = 1_000
"""Of a larger tree those with most at stake are flipped, and it is told how many were not."""
_BLOCK = 250
"""Flips tried at a time, which bounds the memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """One leaf, ``outcome`` as judged and ``to`` as flipped. ``yes`` and ``no`` count its votes.

    ``least`` and ``greatest`` are what it changes of the score: with every open leaf failed, and with every one passed.
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
        """The largest change in either direction."""
        return max(abs(self.least), abs(self.greatest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """The score as it is, the flips that change it, weightiest first, and how many leaves would change nothing.

    ``left_out`` counts leaves that were not tried.
    """

    score: Score
    flips: tuple[Flip, ...]
    without_effect: int
    left_out: int


def flips(result: Mapping[str, Any]) -> Flips | None:
    """Every leaf of a result, flipped one at a time; None where it has no tree.

    Raises:
        InvalidNode: a weight that is not a finite number above zero.
    """
    root = judged_tree(result)
    if root is None:
        return None
    stakes = _stakes(root)
    leaves = sorted(leaves_below(root), key=lambda leaf: -stakes[leaf.key])
    tried = [(leaf, to) for leaf in leaves[:MOST_LEAVES] for to in _TURNS[leaf.outcome]]
    now, *scores = _scores(root, [{}, *({leaf.key: to is Outcome.PASSED} for leaf, to in tried)])
    found = [_flip(leaf, to, score, now) for (leaf, to), score in zip(tried, scores, strict=True)]
    weighty = sorted((flip for flip in found if flip.most > 0), key=lambda flip: (-flip.most, flip.key))
    return Flips(
        score=now,
        flips=tuple(weighty),
        without_effect=min(len(leaves), MOST_LEAVES) - len({flip.key for flip in weighty}),
        left_out=max(0, len(leaves) - MOST_LEAVES),
    )


_TURNS = {
    Outcome.PASSED: (Outcome.FAILED,),
    Outcome.FAILED: (Outcome.PASSED,),
    Outcome.UNDECIDED: (Outcome.PASSED,),
    Outcome.SKIPPED: (Outcome.PASSED, Outcome.FAILED),
    Outcome.NOT_JUDGED: (Outcome.PASSED, Outcome.FAILED),
}
"""What a leaf is turned to: the other verdict, or both where nobody found out or looked. Undecided counts as failed."""


def _scores(root: JudgedNode, said: Sequence[Mapping[str, bool]]) -> Iterator[Score]:
    ground = Ground(root)
    for start in range(0, len(said), _BLOCK):
        lows, highs = ground.judged(said[start : start + _BLOCK])
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
            yield Score(value=low if low == high else None, low=low, high=high)


def _flip(leaf: JudgedNode, to: Outcome, score: Score, now: Score) -> Flip:
    least, greatest = sorted((score.low - now.low, score.high - now.high))
    yes, no = votes_of(leaf)
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
    """The share of the whole score under each node, a critical one's being all of its parent's."""
    stakes = {root.key: 1.0}
    for node in walk(root):
        total = sum(child.weight for child in node.children if not child.critical)
        for child in node.children:
            stakes[child.key] = stakes[node.key] * (1.0 if child.critical else child.weight / total)
    return stakes
