"""The score of one result under many variants, from the lowest it can be to the highest. Pure; needs numpy.

``judges.analysis.overrides`` defines what a flipped or missing leaf does to later leaves: a gate that opens leaves them
unknown, a named prerequisite that fails makes them 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from judges.analysis.overrides import JudgedNode, leaf_intervals
from judges.analysis.sensitivity.many import Variants, fold_many
from rubrics.tree import leaves_below, walk
from rubrics.verdict import Outcome

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats

Span: TypeAlias = "tuple[Floats, Floats]"
"""The least and the greatest score in each variant."""


class Ground:
    """One result's tree, with what single leaves do to others."""

    def __init__(self, root: JudgedNode) -> None:
        self.root = root
        self.leaves = {leaf.key: leaf for leaf in leaves_below(root)}
        self._now = self._intervals({})
        self._open = any(least < most for least, most in self._now.values())
        self._gates = _gates(root)

    def judged(self, said: Sequence[Mapping[str, bool]]) -> Span:
        """With other verdicts: one variant for each of ``said``, which maps leaves to whether they pass."""
        return self._fold([self._changed(each) for each in said])

    def without(self, keys: Sequence[str]) -> Span:
        """With one leaf left out in each variant; a score of 0 to 1 where nothing is left."""
        import numpy as np

        # A gate that is not there is open.
        rows = [self._changed({key: True}) if key in self.leaves else {} for key in keys]
        known = set(keys) & set(self.leaves)
        present = {key: np.array([0.0 if left_out == key else 1.0 for left_out in keys]) for key in known}
        return self._fold(rows, present=present)

    def weighted(self, factors: Mapping[str, Floats], count: int) -> Span:
        """With the weights of nodes multiplied by ``factors``, each an array of ``count`` numbers."""
        return self._fold([{}] * count, factors=factors)

    def _changed(self, said: Mapping[str, bool]) -> Mapping[str, tuple[float, float]]:
        """The intervals of the leaves that are not as they were."""
        if self._gates & said.keys():
            return self._intervals(said)
        return {key: (float(passed), float(passed)) for key, passed in said.items()}

    def _intervals(self, said: Mapping[str, bool]) -> Mapping[str, tuple[float, float]]:
        interval = leaf_intervals(self.root, said)
        return {key: interval(leaf) for key, leaf in self.leaves.items()}

    def _fold(
        self,
        rows: Sequence[Mapping[str, tuple[float, float]]],
        *,
        factors: Mapping[str, Floats] | None = None,
        present: Mapping[str, Floats] | None = None,
    ) -> Span:
        """The span of each variant: ``rows`` has the intervals of the leaves that are not as they were."""
        import numpy as np

        def folded(end: int) -> tuple[Floats, Floats | None]:
            points = {key: np.full(len(rows), interval[end]) for key, interval in self._now.items()}
            for nth, row in enumerate(rows):
                for key, interval in row.items():
                    points[key][nth] = interval[end]
            variants = Variants(count=len(rows), points=points, factors=factors or {}, present=present or {})
            return fold_many(self.root, variants)

        low, left = folded(0)
        known = not self._open and all(least == most for row in rows for least, most in row.values())
        high = low if known else folded(1)[0]
        return (low, high) if left is None else (np.where(left > 0, low, 0.0), np.where(left > 0, high, 1.0))


def _gates(root: JudgedNode) -> frozenset[str]:
    """The leaves that more hangs on than their own points: what kept others from being judged, or is required."""
    nodes = list(walk(root))
    by_id: dict[str, JudgedNode] = {}
    for node in nodes:
        by_id.setdefault(node.id, node)
    named = {id for node in nodes for id in node.requires}
    named |= {str(node.data.get("blocked_by")) for node in nodes if node.outcome is Outcome.SKIPPED}
    below = (leaf for id in named if id in by_id for leaf in leaves_below(by_id[id]))
    return frozenset(leaf.key for leaf in below)
