"""Lowest and highest possible score of one result under many variants. Pure; needs numpy.

``judges.analysis.overrides`` defines the effect of a flipped or removed leaf on other leaves: behind a gate that opens
they are unknown, behind a failed prerequisite they count 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from judges.analysis.overrides import JudgedNode, leaf_intervals
from judges.analysis.sensitivity.many import Variants, score_variants
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
        return self._fold([self._changed(each) for each in verdicts])

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
    named = {id for node in nodes for id in node.requires}
    named |= {str(node.data.get("blocked_by")) for node in nodes if node.outcome is Outcome.SKIPPED}
    below = (leaf for id in named if id in by_id for leaf in leaves_below(by_id[id]))
    return frozenset(leaf.key for leaf in below)
