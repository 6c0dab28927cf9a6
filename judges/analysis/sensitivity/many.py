"""Vectorized scoring of one tree under many variants: other verdicts, other weights, removed leaves. Pure; needs numpy.

The rules are those of ``rubrics.scoring``, which scores one tree. Here every number is an array with one element per
variant, because a thousand resamples of hundreds of trees would take minutes in a loop. Tests check that both give
equal scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from judges.analysis.overrides import JudgedNode
from rubrics.node import Strategy

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats

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
    found = [score_variants(child, variants) for child in root.children]
    scores, present = np.stack([score for score, _ in found]), _stacked([each for _, each in found], variants.count)
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
    if all(each is None for each in factors):
        return plain
    return plain * np.stack([np.ones(variants.count) if each is None else each for each in factors])


def _weighted_mean(weights: Floats, scores: Floats, count: int) -> Floats:
    """Return the weighted mean, or 0 without weights. Sums row by row, in the same order as ``rubrics.scoring``."""
    import numpy as np

    total = np.broadcast_to(weights.sum(axis=0), (count,))
    mean = np.zeros(count)
    np.divide((weights * scores).sum(axis=0), total, out=mean, where=total > 0)
    return mean
