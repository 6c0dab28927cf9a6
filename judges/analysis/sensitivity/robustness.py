"""Robustness of a comparison: does one side stay ahead if leaves, votes or weights change? Pure; needs numpy.

Differences are B - A over the common tasks, with the mean of the answers to a task. No model is asked; only stored
verdicts are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from judges.analysis.overrides import JudgedNode
from judges.analysis.sensitivity.answers import TaskAnswers
from judges.analysis.sensitivity.variants import ScoreRange
from judges.analysis.statistics.bootstrap import SEED
from judges.analysis.statistics.interval import LEVEL
from rubrics.tree import walk

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats

Trees: TypeAlias = Mapping[str, Sequence["JudgedNode | None"]]
"""One side of a comparison: trees of its answers by task; None for an answer without a result."""

DRAWS = 1_000
ROUNDING_TOLERANCE = 1e-9
"""Differences closer to 0 count as rounding errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDifference:
    """B - A, with bounds if leaves are unknown."""

    low: float
    high: float

    @property
    def ahead(self) -> str | None:
        """``a`` or ``b`` if that side is ahead for all values of unknown leaves, otherwise None."""
        return "b" if self.low > ROUNDING_TOLERANCE else "a" if self.high < -ROUNDING_TOLERANCE else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafChange:
    """One change of one leaf, and the resulting difference."""

    task_id: str
    leaf: str
    difference: ScoreDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadCounts:
    """Number of changes by their effect on the side that is ahead.

    After the change it is certainly ahead (``holds``), not ahead (``lost``), or possibly ahead (``open``). ``tried`` is
    the total.
    """

    tried: int
    holds: int
    lost: int
    open: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleChanges:
    """Changes of one leaf at a time. ``turns`` lists those after which the side is not certainly ahead, worst first."""

    tally: LeadCounts
    turns: tuple[LeafChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomChanges:
    """Random changes of everything at once. ``low`` and ``high`` bound the middle 95 % of the differences."""

    tally: LeadCounts
    seed: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """Robustness of a comparison. ``split_leaves`` counts verdicts with differing votes."""

    tasks: int
    difference: ScoreDifference
    leave_one_leaf_out: SingleChanges
    split_leaves: int
    minority_wins: SingleChanges
    minority_wins_everywhere: ScoreDifference
    votes_redrawn: RandomChanges
    equal_weights: ScoreDifference
    weights_redrawn: RandomChanges


def robustness(a: Trees, b: Trees, *, seed: int = SEED, draws: int = DRAWS) -> Robustness | None:
    """Compare two sides under every change. Returns None if they have no common task."""
    tasks = sorted(a.keys() & b.keys())
    if not tasks:
        return None
    comparison = _Comparison({task: _pair(task, a[task], b[task]) for task in tasks})
    return Robustness(
        tasks=len(tasks),
        difference=comparison.now,
        leave_one_leaf_out=comparison.one_by_one(lambda side: side.leaves, TaskAnswers.without_leaf),
        split_leaves=sum(len(side.split) for pair in comparison.pairs.values() for side in pair),
        minority_wins=comparison.one_by_one(lambda side: side.split, TaskAnswers.with_minority_vote),
        minority_wins_everywhere=comparison.at_once(TaskAnswers.with_all_minority_votes),
        votes_redrawn=comparison.drawn(lambda side: side.with_resampled_votes(seed, draws), seed),
        equal_weights=comparison.at_once(TaskAnswers.with_equal_weights),
        weights_redrawn=comparison.drawn(lambda side: side.with_random_weights(seed, draws), seed),
    )


def _pair(task: str, a: Sequence[JudgedNode | None], b: Sequence[JudgedNode | None]) -> tuple[TaskAnswers, TaskAnswers]:
    nodes = sorted({node.key for root in (*a, *b) if root is not None for node in walk(root)})
    return TaskAnswers(task, "a", a, nodes), TaskAnswers(task, "b", b, nodes)


class _Comparison:
    """Answers of both sides by task, with the difference of their scores."""

    def __init__(self, pairs: Mapping[str, tuple[TaskAnswers, TaskAnswers]]) -> None:
        self.pairs = pairs
        self._by_task = {task: _difference(a.now(), b.now()) for task, (a, b) in pairs.items()}
        self.now = self.at_once(TaskAnswers.now)

    def at_once(self, change: Callable[[TaskAnswers], ScoreRange]) -> ScoreDifference:
        """Return the difference with one change in all answers."""
        low, high = self._everywhere(change)
        return ScoreDifference(low=float(low[0]), high=float(high[0]))

    def drawn(self, change: Callable[[TaskAnswers], ScoreRange], seed: int) -> RandomChanges:
        """Return the distribution of differences under random changes in all answers."""
        import numpy as np

        low, high = self._everywhere(change)
        ends = (1 - LEVEL) / 2, (1 + LEVEL) / 2
        least, greatest = float(np.quantile(low, ends[0])), float(np.quantile(high, ends[1]))
        tally = self._tally([ScoreDifference(low=float(x), high=float(y)) for x, y in zip(low, high, strict=True)])
        return RandomChanges(tally=tally, seed=seed, low=least, high=greatest)

    def one_by_one(
        self,
        keys_of: Callable[[TaskAnswers], Sequence[str] | frozenset[str]],
        change: Callable[[TaskAnswers, list[str]], ScoreRange],
    ) -> SingleChanges:
        """Return the differences with one leaf changed at a time, in both sides."""
        turns: list[LeafChange] = []
        for task, (a, b) in self.pairs.items():
            keys = sorted({*keys_of(a), *keys_of(b)})
            if not keys:
                continue
            low, high = _difference(change(a, keys), change(b, keys))
            was_low, was_high = self._by_task[task]
            for key, least, greatest in zip(keys, low - was_low, high - was_high, strict=True):
                shifted = ScoreDifference(
                    low=self.now.low + float(least) / len(self.pairs),
                    high=self.now.high + float(greatest) / len(self.pairs),
                )
                turns.append(LeafChange(task_id=task, leaf=key, difference=shifted))
        worst = [turn for turn in turns if self.now.ahead and turn.difference.ahead != self.now.ahead]
        worst.sort(key=lambda turn: self._margin(turn.difference))
        return SingleChanges(tally=self._tally([turn.difference for turn in turns]), turns=tuple(worst))

    def _everywhere(self, change: Callable[[TaskAnswers], ScoreRange]) -> tuple[Floats, Floats]:
        import numpy as np

        spans = [_difference(change(a), change(b)) for a, b in self.pairs.values()]
        return np.mean([low for low, _ in spans], axis=0), np.mean([high for _, high in spans], axis=0)

    def _tally(self, differences: Sequence[ScoreDifference]) -> LeadCounts:
        if self.now.ahead is None:
            return LeadCounts(tried=len(differences), holds=0, lost=0, open=len(differences))
        holds = sum(each.ahead == self.now.ahead for each in differences)
        lost = sum(self._margin(each, best=True) <= ROUNDING_TOLERANCE for each in differences)
        return LeadCounts(tried=len(differences), holds=holds, lost=lost, open=len(differences) - holds - lost)

    def _margin(self, difference: ScoreDifference, *, best: bool = False) -> float:
        """Return the lead of the side that is ahead without changes: its minimum, or with ``best`` its maximum."""
        if self.now.ahead == "a":
            return -(difference.low if best else difference.high)
        return difference.high if best else difference.low


def _difference(a: ScoreRange, b: ScoreRange) -> tuple[Floats, Floats]:
    return b[0] - a[1], b[1] - a[0]
