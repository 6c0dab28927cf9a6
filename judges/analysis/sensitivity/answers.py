"""One side's answers to one task under every kind of change: their least and greatest mean score. Needs numpy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from judges.analysis.overrides import JudgedNode
from judges.analysis.sensitivity.leaf_votes import votes_of
from judges.analysis.sensitivity.variants import Ground, Span
from rubrics.tree import walk
from rubrics.verdict import Outcome

if TYPE_CHECKING:
    import numpy as np

    from judges.analysis.statistics.bootstrap import Floats

FACTOR = 2.0
"""Weights are multiplied by something between 1/FACTOR and FACTOR, as likely up as down by as much."""


class Answers:
    """``roots`` are the trees of a side's answers to one task; None: no result, its score may be anything.

    ``nodes`` are the keys of all nodes of the task on either side, sorted: what is drawn for them is the same on both.
    """

    def __init__(self, task_id: str, side: str, roots: Sequence[JudgedNode | None], nodes: Sequence[str]) -> None:
        self._task_id = task_id
        self._side = side
        self._nodes = nodes
        self._grounds = [None if root is None else Ground(root) for root in roots]
        self._split = [{} if each is None else _split(each) for each in self._grounds]

    @property
    def leaves(self) -> frozenset[str]:
        """The keys of all leaves."""
        return frozenset(key for each in self._grounds if each is not None for key in each.leaves)

    @property
    def split(self) -> Sequence[str]:
        """The keys of leaves whose votes did not agree, once for each answer."""
        return [key for each in self._split for key in each]

    def now(self) -> Span:
        """As it is."""
        return self._mean(1, lambda _, ground: ground.judged([{}]))

    def without(self, keys: Sequence[str]) -> Span:
        """One leaf left out in each variant, of every answer that has it."""
        return self._mean(len(keys), lambda _, ground: ground.without(keys))

    def outvoted(self, keys: Sequence[str]) -> Span:
        """In each variant the minority wins at one leaf, in every answer in which its votes did not agree."""

        def rows(nth: int) -> list[Mapping[str, bool]]:
            split = self._split[nth]
            return [{key: not split[key].passed} if key in split else {} for key in keys]

        return self._mean(len(keys), lambda nth, ground: ground.judged(rows(nth)))

    def all_outvoted(self) -> Span:
        """The minority wins everywhere."""
        turned = [{key: not vote.passed for key, vote in each.items()} for each in self._split]
        return self._mean(1, lambda nth, ground: ground.judged([turned[nth]]))

    def revoted(self, seed: int, draws: int) -> Span:
        """Every leaf's votes drawn again from those it had, with replacement; a tie leaves the verdict as it is."""

        def span(nth: int, ground: Ground) -> Span:
            split = self._split[nth]
            if not split:
                low, high = ground.judged([{}])
                return low.repeat(draws), high.repeat(draws)
            random = _random(seed, self._side, self._task_id, str(nth))
            outcomes = {key: vote.redrawn(random, draws) for key, vote in split.items()}
            patterns = list(zip(*(each.tolist() for each in outcomes.values()), strict=True))
            different = {pattern: place for place, pattern in enumerate(dict.fromkeys(patterns))}
            low, high = ground.judged([dict(zip(outcomes, pattern, strict=True)) for pattern in different])
            places = [different[pattern] for pattern in patterns]
            return low[places], high[places]

        return self._mean(draws, span)

    def reweighted(self, seed: int, draws: int) -> Span:
        """Every node's weight multiplied by a factor, the same for the node of that name in all answers to the task."""

        drawn = FACTOR ** _random(seed, self._task_id).uniform(-1.0, 1.0, (len(self._nodes), draws))
        factors = dict(zip(self._nodes, drawn, strict=True))
        return self._mean(draws, lambda _, ground: ground.weighted(factors, draws))

    def equally_weighted(self) -> Span:
        """All weights the same."""
        import numpy as np

        def factors(ground: Ground) -> dict[str, Floats]:
            return {node.key: np.array([1.0 / node.weight]) for node in walk(ground.root)}

        return self._mean(1, lambda _, ground: ground.weighted(factors(ground), 1))

    def _mean(self, count: int, span: Callable[[int, Ground], Span]) -> Span:
        import numpy as np

        low, high = np.zeros(count), np.zeros(count)
        for nth, ground in enumerate(self._grounds):
            least, greatest = (np.zeros(count), np.ones(count)) if ground is None else span(nth, ground)
            low, high = low + least, high + greatest
        return low / len(self._grounds), high / len(self._grounds)


class _Votes:
    """The votes of one leaf, which did not agree."""

    def __init__(self, leaf: JudgedNode) -> None:
        self.passed = leaf.outcome is Outcome.PASSED
        self._yes, self._no = votes_of(leaf)

    def redrawn(self, random: np.random.Generator, draws: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether the leaf passes, by the majority of as many votes again."""
        import numpy as np

        cast = self._yes + self._no
        yes = random.binomial(cast, self._yes / cast, size=draws)
        return np.where(2 * yes == cast, self.passed, 2 * yes > cast)


def _split(ground: Ground) -> dict[str, _Votes]:
    """The leaves that votes decided which did not agree."""
    decided = (Outcome.PASSED, Outcome.FAILED)
    return {key: _Votes(leaf) for key, leaf in ground.leaves.items() if leaf.outcome in decided and all(votes_of(leaf))}


def _random(seed: int, *names: str) -> np.random.Generator:
    """Numbers that depend on the seed and the names alone, not on what was drawn before."""
    import numpy as np

    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])
