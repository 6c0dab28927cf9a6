"""Minimum and maximum mean score of one agent's answers to one task, under several kinds of changes. Needs numpy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from judges.analysis.overrides import JudgedNode, vote_counts
from judges.analysis.sensitivity.variants import ScoredTree, ScoreRange
from rubrics.tree import walk
from rubrics.verdict import Outcome

if TYPE_CHECKING:
    import numpy as np

    from judges.analysis.statistics.bootstrap import Floats

FACTOR = 2.0
"""Random weight factors are log-uniform in [1/FACTOR, FACTOR]."""


class TaskAnswers:
    """Answers of one agent to one task.

    ``roots`` are the trees of the answers; None: no result, so the score may be anything from 0 to 1. ``nodes`` are the
    sorted keys of all nodes of the task on both sides, so that both sides use the same random factors.
    """

    def __init__(self, task_id: str, side: str, roots: Sequence[JudgedNode | None], nodes: Sequence[str]) -> None:
        self._task_id = task_id
        self._side = side
        self._nodes = nodes
        self._trees = [None if root is None else ScoredTree(root) for root in roots]
        self._split = [{} if tree is None else _split(tree) for tree in self._trees]

    @property
    def leaves(self) -> frozenset[str]:
        """Keys of all leaves."""
        return frozenset(key for tree in self._trees if tree is not None for key in tree.leaves)

    @property
    def split(self) -> Sequence[str]:
        """Keys of leaves with differing votes, once per answer."""
        return [key for each in self._split for key in each]

    def now(self) -> ScoreRange:
        """Return the score without changes."""
        return self._mean(1, lambda _, tree: tree.judged([{}]))

    def without_leaf(self, keys: Sequence[str]) -> ScoreRange:
        """Return the scores with one leaf removed per variant, from every answer that has it."""
        return self._mean(len(keys), lambda _, tree: tree.without_leaf(keys))

    def with_minority_vote(self, keys: Sequence[str]) -> ScoreRange:
        """Return the scores with the minority vote at one leaf per variant, in answers with differing votes."""

        def rows(index: int) -> list[Mapping[str, bool]]:
            split = self._split[index]
            return [{key: not split[key].passed} if key in split else {} for key in keys]

        return self._mean(len(keys), lambda index, tree: tree.judged(rows(index)))

    def with_all_minority_votes(self) -> ScoreRange:
        """Return the score with the minority vote at every leaf."""
        minority = [{key: not vote.passed for key, vote in each.items()} for each in self._split]
        return self._mean(1, lambda index, tree: tree.judged([minority[index]]))

    def with_resampled_votes(self, seed: int, draws: int) -> ScoreRange:
        """Return the scores with the votes of every leaf resampled with replacement. A tie keeps the verdict."""

        def span(index: int, tree: ScoredTree) -> ScoreRange:
            split = self._split[index]
            if not split:
                low, high = tree.judged([{}])
                return low.repeat(draws), high.repeat(draws)
            random = _random(seed, self._side, self._task_id, str(index))
            outcomes = {key: vote.redrawn(random, draws) for key, vote in split.items()}
            patterns = list(zip(*(outcome.tolist() for outcome in outcomes.values()), strict=True))
            distinct = {pattern: place for place, pattern in enumerate(dict.fromkeys(patterns))}
            low, high = tree.judged([dict(zip(outcomes, pattern, strict=True)) for pattern in distinct])
            places = [distinct[pattern] for pattern in patterns]
            return low[places], high[places]

        return self._mean(draws, span)

    def with_random_weights(self, seed: int, draws: int) -> ScoreRange:
        """Return the scores with random weight factors. A node has the same factor in all answers to the task."""

        drawn = FACTOR ** _random(seed, self._task_id).uniform(-1.0, 1.0, (len(self._nodes), draws))
        factors = dict(zip(self._nodes, drawn, strict=True))
        return self._mean(draws, lambda _, tree: tree.with_weights(factors, draws))

    def with_equal_weights(self) -> ScoreRange:
        """Return the score with equal weights."""
        import numpy as np

        def factors(tree: ScoredTree) -> dict[str, Floats]:
            return {node.key: np.array([1.0 / node.weight]) for node in walk(tree.root)}

        return self._mean(1, lambda _, tree: tree.with_weights(factors(tree), 1))

    def _mean(self, count: int, span: Callable[[int, ScoredTree], ScoreRange]) -> ScoreRange:
        import numpy as np

        low, high = np.zeros(count), np.zeros(count)
        for index, tree in enumerate(self._trees):
            least, greatest = (np.zeros(count), np.ones(count)) if tree is None else span(index, tree)
            low, high = low + least, high + greatest
        return low / len(self._trees), high / len(self._trees)


class _Votes:
    """Differing votes of one leaf."""

    def __init__(self, leaf: JudgedNode) -> None:
        self.passed = leaf.outcome is Outcome.PASSED
        self._yes, self._no = vote_counts(leaf)

    def redrawn(self, random: np.random.Generator, draws: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Return whether the leaf passes in each resample, by majority of the same number of votes."""
        import numpy as np

        cast = self._yes + self._no
        yes = random.binomial(cast, self._yes / cast, size=draws)
        return np.where(2 * yes == cast, self.passed, 2 * yes > cast)


def _split(tree: ScoredTree) -> dict[str, _Votes]:
    """Return the leaves that were decided by differing votes."""
    decided = (Outcome.PASSED, Outcome.FAILED)
    return {
        key: _Votes(leaf) for key, leaf in tree.leaves.items() if leaf.outcome in decided and all(vote_counts(leaf))
    }


def _random(seed: int, *names: str) -> np.random.Generator:
    """Return a generator that depends only on the seed and the names."""
    import numpy as np

    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])
