"""Lowest and highest possible score of one result under many variants. Pure; needs numpy.

``judges.analysis.overrides`` defines the effect of an inverted or removed leaf on other leaves: behind a gate that
opens they are unknown, behind a failed prerequisite they count 0.

The rules are those of ``rubrics.scoring``, which scores one tree. Here every number is an array with one element per
variant, because a thousand resamples of hundreds of trees would take minutes in a loop. Tests check that both give
equal scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from judges.analysis.overrides import JudgedNode, leaf_intervals
from rubrics.node import Strategy
from rubrics.tree import leaves_below, walk
from rubrics.verdict import Outcome

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats


ScoreRange: TypeAlias = "tuple[Floats, Floats]"
"""Lowest and highest score in each variant."""


class ScoredTree:
    """Tree of one result, with the gates between its leaves."""

    def __init__(self, root: JudgedNode) -> None:
        self.root = root
        self.leaves = {leaf.key: leaf for leaf in leaves_below(root)}
        self._now = self._intervals({})
        self._open = any(least < most for least, most in self._now.values())
        self._gates = _gates(root)

    def judged(self, verdicts: Sequence[Mapping[str, bool]]) -> ScoreRange:
        """Return the scores with other verdicts: one variant per element of ``verdicts`` (leaf key to passed)."""
        return self._fold([self._changed(verdict) for verdict in verdicts])

    def without_leaf(self, keys: Sequence[str]) -> ScoreRange:
        """Return the scores with one leaf removed per variant. If no leaf remains, the score is 0 to 1."""
        import numpy as np

        # A removed gate counts as open.
        rows = [self._changed({key: True}) if key in self.leaves else {} for key in keys]
        known = set(keys) & set(self.leaves)
        present = {key: np.array([0.0 if left_out == key else 1.0 for left_out in keys]) for key in known}
        return self._fold(rows, present=present)

    def with_weights(self, factors: Mapping[str, Floats], count: int) -> ScoreRange:
        """Return the scores with node weights multiplied by ``factors``, arrays of ``count`` numbers."""
        return self._fold([{}] * count, factors=factors)

    def _changed(self, verdicts: Mapping[str, bool]) -> Mapping[str, tuple[float, float]]:
        """Return the intervals of the leaves that change."""
        if self._gates & verdicts.keys():
            return self._intervals(verdicts)
        return {key: (float(passed), float(passed)) for key, passed in verdicts.items()}

    def _intervals(self, verdicts: Mapping[str, bool]) -> Mapping[str, tuple[float, float]]:
        interval = leaf_intervals(self.root, verdicts)
        return {key: interval(leaf) for key, leaf in self.leaves.items()}

    def _fold(
        self,
        rows: Sequence[Mapping[str, tuple[float, float]]],
        *,
        factors: Mapping[str, Floats] | None = None,
        present: Mapping[str, Floats] | None = None,
    ) -> ScoreRange:
        """Return the span of each variant. ``rows`` contains the intervals of the changed leaves of each variant."""
        import numpy as np

        def folded(end: int) -> tuple[Floats, Floats | None]:
            points = {key: np.full(len(rows), interval[end]) for key, interval in self._now.items()}
            for index, row in enumerate(rows):
                for key, interval in row.items():
                    points[key][index] = interval[end]
            variants = Variants(count=len(rows), points=points, factors=factors or {}, present=present or {})
            return score_variants(self.root, variants)

        low, remaining = folded(0)
        known = not self._open and all(least == most for row in rows for least, most in row.values())
        high = low if known else folded(1)[0]
        return (
            (low, high)
            if remaining is None
            else (np.where(remaining > 0, low, 0.0), np.where(remaining > 0, high, 1.0))
        )


def _gates(root: JudgedNode) -> frozenset[str]:
    """Return the leaves that affect other leaves: those that blocked a leaf, and prerequisites."""
    nodes = list(walk(root))
    by_id: dict[str, JudgedNode] = {}
    for node in nodes:
        by_id.setdefault(node.id, node)
    required_ids = {id for node in nodes for id in node.requires}
    required_ids |= {str(node.data.get("blocked_by")) for node in nodes if node.outcome is Outcome.SKIPPED}
    below = (leaf for id in required_ids if id in by_id for leaf in leaves_below(by_id[id]))
    return frozenset(leaf.key for leaf in below)


_JUST_BELOW_ONE = math.nextafter(1.0, 0.0)
_SCALE_ABOVE = 1e150
"""Larger weights are scaled down so that their sum stays finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """``count`` variants of a tree: arrays with one element per variant, by node key.

    ``points`` contains every leaf. ``factors`` multiply weights. ``present`` is 0.0 in variants without the leaf. Nodes
    missing in ``factors`` or ``present`` are unchanged.
    """

    count: int
    points: Mapping[str, Floats]
    factors: Mapping[str, Floats] = field(default_factory=dict)
    present: Mapping[str, Floats] = field(default_factory=dict)


def score_variants(root: JudgedNode, variants: Variants) -> tuple[Floats, Floats | None]:
    """Return the score of the tree in each variant, and whether any leaf remains there.

    The second value is 1.0 or 0.0 per variant, or None if no leaf was removed. A group without remaining leaves is
    removed, too.
    """
    import numpy as np

    if not root.children:
        return variants.points[root.key], variants.present.get(root.key)
    child_scores = [score_variants(child, variants) for child in root.children]
    scores, present = (
        np.stack([score for score, _ in child_scores]),
        _stacked([each for _, each in child_scores], variants.count),
    )
    below = scores < 1.0 if present is None else (scores < 1.0) & (present > 0)
    if root.strategy == Strategy.SEQUENTIAL:
        # Steps after the first incomplete one count 0. A removed step does not count as incomplete.
        before = np.logical_or.accumulate(below, axis=0)[:-1]
        scores[1:][before] = 0.0
        below[1:] |= before if present is None else before & (present[1:] > 0)
    critical = np.array([child.critical for child in root.children])
    weights = _weights(root, variants) if present is None else _weights(root, variants) * present
    mean = _weighted_mean(weights[~critical], scores[~critical], variants.count)
    incomplete = below[~critical].any(axis=0)
    score = np.where(incomplete, np.minimum(mean, _JUST_BELOW_ONE), 1.0)
    score[below[critical].any(axis=0)] = 0.0
    return score, None if present is None else present.max(axis=0)


def _stacked(present: Sequence[Floats | None], count: int) -> Floats | None:
    import numpy as np

    if all(each is None for each in present):
        return None
    return np.stack([np.ones(count) if each is None else each for each in present])


def _weights(root: JudgedNode, variants: Variants) -> Floats:
    """Return an array of shape (children, variants), or (children, 1) if all variants have the same weights."""
    import numpy as np

    largest = max(child.weight for child in root.children)
    scale = largest if largest > _SCALE_ABOVE else 1.0
    plain = np.array([[child.weight / scale] for child in root.children])
    factors = [variants.factors.get(child.key) for child in root.children]
    if all(factor is None for factor in factors):
        return plain
    return plain * np.stack([np.ones(variants.count) if factor is None else factor for factor in factors])


def _weighted_mean(weights: Floats, scores: Floats, count: int) -> Floats:
    """Return the weighted mean, or 0 without weights. Sums row by row, in the same order as ``rubrics.scoring``."""
    import numpy as np

    total = np.broadcast_to(weights.sum(axis=0), (count,))
    mean = np.zeros(count)
    np.divide((weights * scores).sum(axis=0), total, out=mean, where=total > 0)
    return mean
