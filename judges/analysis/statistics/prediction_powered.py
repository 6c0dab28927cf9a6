"""Prediction-powered estimate of a share: many verdicts of a judge, corrected with labels on a sample of them. Pure.

A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic, "Prediction-powered inference", Science 382 (2023);
the weight of the verdicts is tuned as in A. N. Angelopoulos, J. C. Duchi, T. Zrnic, "PPI++", arXiv 2311.01453 (2023),
section 6. The labelled items must be a random sample. No assumption is made about the errors of the judge.

The variance is computed from sums over clusters (tasks), because verdicts on one task are correlated: K.-Y. Liang,
S. L. Zeger, "Longitudinal data analysis using generalized linear models", Biometrika 73 (1986). numpy and scipy are
imported on first use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from judges.analysis.statistics.interval import Interval
from judges.analysis.statistics.student import quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedUnit:
    """Item with the verdict of the judge, its cluster, and the label of a person if it is in the sample."""

    cluster: str
    judge: bool
    label: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedShare:
    """Share of items that pass: by the judge (``raw``) and corrected, each with its interval.

    An interval is None with fewer than two clusters. ``weight`` is that of the verdicts: 0 ignores the judge.
    """

    raw: float
    raw_interval: Interval | None
    corrected: float
    interval: Interval | None
    weight: float
    units: int
    labelled: int


def corrected_share(units: Sequence[JudgedUnit]) -> CorrectedShare:
    """Return the share of units that pass, corrected with the labels.

    Raises:
        ValueError: no unit has a label.
    """
    import numpy as np

    clusters = {name: n for n, name in enumerate(sorted({unit.cluster for unit in units}))}
    place = np.array([clusters[unit.cluster] for unit in units])
    judge = np.array([unit.judge for unit in units], dtype=float)
    is_labelled = np.array([unit.label is not None for unit in units])
    labels = np.array([float(unit.label) for unit in units if unit.label is not None])
    if not len(labels):
        raise ValueError("no unit has a label")
    verdicts, others = judge[is_labelled], judge[~is_labelled]
    weight = _weight(verdicts.tolist(), labels.tolist(), len(others))
    residual = labels - weight * verdicts
    corrected = float(residual.mean()) + (weight * float(others.mean()) if len(others) else 0.0)

    def spread_by_cluster(values: Sequence[float], members: Sequence[int]) -> Sequence[float]:
        deviations = (np.asarray(values) - np.mean(values)) / len(values)
        return list(np.bincount(members, weights=deviations, minlength=len(clusters)))

    influence = np.array(spread_by_cluster(residual.tolist(), place[is_labelled].tolist()))
    if len(others) and weight:
        influence = influence + np.array(spread_by_cluster((weight * others).tolist(), place[~is_labelled].tolist()))
    raw_influence = spread_by_cluster(judge.tolist(), place.tolist())
    method = f"prediction-powered, {len(labels)} labels, clustered by {len(clusters)} tasks"
    return CorrectedShare(
        raw=float(judge.mean()),
        raw_interval=_interval(float(judge.mean()), raw_influence, f"clustered by {len(clusters)} tasks"),
        corrected=min(1.0, max(0.0, corrected)),
        interval=_interval(corrected, influence.tolist(), method),
        weight=weight,
        units=len(units),
        labelled=len(labels),
    )


def _weight(verdicts: Sequence[float], labels: Sequence[float], others: int) -> float:
    """Return the weight with the least variance, within 0 to 1; 0 if the verdicts do not vary or all are labelled."""
    import numpy as np

    n = len(labels)
    variance = float(np.var(verdicts))
    if not others or n < 2 or variance <= 0:
        return 0.0
    covariance = float(np.mean((np.array(labels) - np.mean(labels)) * (np.array(verdicts) - np.mean(verdicts))))
    return min(1.0, max(0.0, covariance / ((1 + n / others) * variance)))


def _interval(value: float, influence: Sequence[float], method: str) -> Interval | None:
    """Return the t interval from the influence of each cluster; None for fewer than two clusters or no variance."""
    clusters = len(influence)
    variance = math.fsum(one * one for one in influence) * clusters / max(1, clusters - 1)
    if clusters < 2 or variance <= 0:
        return None
    half = quantile(clusters - 1) * math.sqrt(variance)
    return Interval(low=value - half, high=value + half, method=method).cut(0.0, 1.0)
