"""Score of an agent, corrected for the errors of its judge with labels on a sample of its leaves. Pure.

The labels give the predictive values of the judge: the probability that a leaf holds if the judge passed it, and if the
judge failed it. This is the correction of W. J. Rogan, B. Gladen, "Estimating prevalence from the results of a
screening test", American Journal of Epidemiology 107 (1978), with predictive values instead of sensitivity and
specificity, because the sample is drawn from the agent's own leaves. A score is not a share of leaves: critical leaves
and gates make it nonlinear. Therefore the unlabelled leaves are imputed many times, the rubric is folded each time, and
the scores are pooled: D. B. Rubin, "Multiple Imputation for Nonresponse in Surveys" (1987), section 3.1.

Assumptions: the labelled leaves are a random sample of the judged leaves, and the errors of the judge are independent
among leaves with the same verdict in answers of about the same quality. ``statistics.prediction_powered`` corrects the
share of leaves without the second assumption. numpy and scipy are imported on first use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, variance
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from judges.analysis.overrides import JudgedNode, leaf_intervals
from judges.analysis.statistics.headline import Figure, Trial, headline, task_values, weight_warnings
from judges.analysis.statistics.interval import Interval
from judges.analysis.statistics.prediction_powered import CorrectedShare, JudgedUnit, corrected_share
from judges.analysis.statistics.student import quantile
from rubrics.scoring import bounds
from rubrics.tree import leaves_below
from rubrics.verdict import Outcome

if TYPE_CHECKING:
    import numpy as np

IMPUTATIONS: Final = 100
SEED: Final = 20_250_101
FEW_LABELS: Final = 10
"""With fewer labels on leaves of one verdict, the predictive value of that verdict is little more than a guess."""
_PRIOR: Final = 0.5
"""Jeffreys prior of a predictive value, in leaves of each kind."""
_POOLING: Final = 4.0
"""Weight of the predictive value of a verdict in those of its strata, in leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """Judged answer. ``labels`` maps keys of leaves to whether a person says that they hold."""

    task_id: str
    run: str
    root: JudgedNode
    labels: Mapping[str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeErrors:
    """Labelled leaves by the verdict of the judge."""

    passed: int
    wrongly_passed: int
    failed: int
    wrongly_failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedScore:
    """Score of an agent: ``raw`` by the judge, and corrected for its errors.

    ``low`` and ``high`` of the corrected score differ if leaves are unknown: not judged, or behind a gate that a
    correction opens. ``interval`` covers both; None with fewer than two tasks. ``leaves`` is the share of judged leaves
    that hold.
    """

    raw: Figure
    low: float
    high: float
    interval: Interval | None
    leaves: CorrectedShare
    errors: JudgeErrors
    warnings: tuple[str, ...]


def corrected_score(answers: Sequence[LabelledAnswer], *, imputations: int = IMPUTATIONS) -> CorrectedScore:
    """Return the score of an agent over its answers, with and without correction.

    Raises:
        ValueError: there is no answer, or no leaf that a model judged has a label.
    """
    import numpy as np

    units = [unit for answer in answers for unit in _units(answer)]
    raw = headline(
        [Trial(task_id=one.task_id, run=one.run, **_score(one.root, {})) for one in answers], resampled=False
    )
    if raw is None or not any(unit.label is not None for unit in units):
        raise ValueError("no leaf that a model judged has a label")
    errors = _errors(units)
    random = np.random.default_rng(SEED)
    strata = [_strata(answer) for answer in answers]
    counts = _counts(answers, strata)
    draws = [_draw(answers, strata, counts, random) for _ in range(imputations)]
    by_bound = [_pooled([draw[bound] for draw in draws], answers) for bound in ("low", "high")]
    (low, low_interval), (high, high_interval) = by_bound
    return CorrectedScore(
        raw=raw.score,
        low=low,
        high=high,
        interval=None if low_interval is None or high_interval is None else low_interval.hull(high_interval),
        leaves=corrected_share(units),
        errors=errors,
        warnings=_warnings(errors, raw.tasks) + weight_warnings(raw.weights),
    )


def corrected_json(found: CorrectedScore) -> dict[str, Any]:
    """Return the raw and the corrected figures with intervals, the errors of the judge and the warnings."""
    leaves = found.leaves
    return {
        "score": {
            "raw": {
                "low": found.raw.low,
                "high": found.raw.high,
                "interval": found.raw.interval and asdict(found.raw.interval),
            },
            "corrected": {"low": found.low, "high": found.high, "interval": found.interval and asdict(found.interval)},
        },
        "leaves": {
            "raw": {"value": leaves.raw, "interval": leaves.raw_interval and asdict(leaves.raw_interval)},
            "corrected": {"value": leaves.corrected, "interval": leaves.interval and asdict(leaves.interval)},
            "judged": leaves.units,
            "labelled": leaves.labelled,
            "weight_of_verdicts": leaves.weight,
        },
        "judge_errors": asdict(found.errors),
        "warnings": list(found.warnings),
    }


def judged_by_model(leaf: JudgedNode) -> bool:
    """Return whether a model decided the leaf, so that its verdict can be wrong."""
    return leaf.outcome in (Outcome.PASSED, Outcome.FAILED) and bool(leaf.data.get("votes"))


def _units(answer: LabelledAnswer) -> list[JudgedUnit]:
    return [
        JudgedUnit(cluster=answer.task_id, judge=leaf.outcome is Outcome.PASSED, label=answer.labels.get(leaf.key))
        for leaf in leaves_below(answer.root)
        if judged_by_model(leaf)
    ]


def _errors(units: Sequence[JudgedUnit]) -> JudgeErrors:
    passed = [unit.label for unit in units if unit.judge and unit.label is not None]
    failed = [unit.label for unit in units if not unit.judge and unit.label is not None]
    return JudgeErrors(
        passed=len(passed), wrongly_passed=passed.count(False), failed=len(failed), wrongly_failed=failed.count(True)
    )


_Stratum: TypeAlias = tuple[bool, int]
"""Verdict of the judge on a leaf, and the third of its answer by the share of other leaves that the judge passed."""


def _strata(answer: LabelledAnswer) -> dict[str, _Stratum]:
    """Return the stratum of each leaf that a model judged.

    Where a judge passes most leaves, a leaf more often holds, whatever the verdict on it.
    """
    leaves = {leaf.key: leaf.outcome is Outcome.PASSED for leaf in leaves_below(answer.root) if judged_by_model(leaf)}
    passed, others = sum(leaves.values()), max(1, len(leaves) - 1)
    return {key: (verdict, min(2, int(3 * (passed - verdict) / others))) for key, verdict in leaves.items()}


def _counts(
    answers: Sequence[LabelledAnswer], strata: Sequence[Mapping[str, _Stratum]]
) -> Mapping[_Stratum, tuple[int, int]]:
    """Return how many labelled leaves of each stratum hold and do not hold."""
    counts = {(verdict, third): [0, 0] for verdict in (True, False) for third in range(3)}
    for answer, of_leaf in zip(answers, strata, strict=True):
        for key, stratum in of_leaf.items():
            if key in answer.labels:
                counts[stratum][not answer.labels[key]] += 1
    return {stratum: (holds, fails) for stratum, (holds, fails) in counts.items()}


def _draw(
    answers: Sequence[LabelledAnswer],
    strata: Sequence[Mapping[str, _Stratum]],
    counts: Mapping[_Stratum, tuple[int, int]],
    random: np.random.Generator,
) -> dict[str, list[float]]:
    """Return the scores of all answers in one imputation: predictive values are drawn, then every unlabelled leaf."""
    chances = _predictive_values(counts, random)
    scores: dict[str, list[float]] = {"low": [], "high": []}
    for answer, of_leaf in zip(answers, strata, strict=True):
        imputed = dict(answer.labels)
        for key, stratum in of_leaf.items():
            if key not in imputed:
                imputed[key] = bool(random.random() < chances[stratum])
        score = _score(answer.root, imputed)
        scores["low"].append(score["low"])
        scores["high"].append(score["high"])
    return scores


def _predictive_values(
    counts: Mapping[_Stratum, tuple[int, int]], random: np.random.Generator
) -> Mapping[_Stratum, float]:
    """Draw the probability that a leaf of each stratum holds. The value of the verdict is the prior of its strata."""
    values: dict[_Stratum, float] = {}
    for verdict in (True, False):
        own = {stratum: found for stratum, found in counts.items() if stratum[0] is verdict}
        holds, fails = (sum(found[kind] for found in own.values()) for kind in (0, 1))
        pooled = random.beta(_PRIOR + holds, _PRIOR + fails)
        for stratum, (stratum_holds, stratum_fails) in own.items():
            values[stratum] = random.beta(
                _POOLING * pooled + _PRIOR / 10 + stratum_holds,
                _POOLING * (1 - pooled) + _PRIOR / 10 + stratum_fails,
            )
    return values


def _score(root: JudgedNode, overrides: Mapping[str, bool]) -> dict[str, float]:
    score = bounds(root, leaf_intervals(root, overrides))
    return {"low": score.low, "high": score.high}


def _pooled(draws: Sequence[Sequence[float]], answers: Sequence[LabelledAnswer]) -> tuple[float, Interval | None]:
    """Return the mean score over all imputations and its interval by Rubin's rules."""
    figures = [_mean_and_variance(scores, answers) for scores in draws]
    value = fmean(mean for mean, _ in figures)
    tasks = len({one.task_id for one in answers})
    if tasks < 2:
        return value, None
    within = fmean(error for _, error in figures)
    between = (1 + 1 / len(figures)) * variance(mean for mean, _ in figures)
    if within + between <= 0:
        return value, None
    half = quantile(tasks - 1) * math.sqrt(within + between)
    method = f"multiple imputation, {len(figures)} draws, Student t over {tasks} tasks"
    return value, Interval(low=value - half, high=value + half, method=method).cut(0.0, 1.0)


def _mean_and_variance(scores: Sequence[float], answers: Sequence[LabelledAnswer]) -> tuple[float, float]:
    """Return the public figure of the scores (``task_values``), and the variance of that mean over tasks."""
    by_task: dict[str, list[tuple[str, float]]] = {}
    for answer, score in zip(answers, scores, strict=True):
        by_task.setdefault(answer.task_id, []).append((answer.run, score))
    values, weights = task_values(
        [[run for run, _ in task] for task in by_task.values()],
        [[score for _, score in task] for task in by_task.values()],
    )
    total = math.fsum(weights)
    mean = math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / total
    tasks = len(values)
    squares = math.fsum((weight / total * (value - mean)) ** 2 for value, weight in zip(values, weights, strict=True))
    return mean, squares * tasks / max(1, tasks - 1)


def _warnings(errors: JudgeErrors, tasks: int) -> tuple[str, ...]:
    warnings = [
        f"labels on leaves that the judge {verdict}: {count}, fewer than {FEW_LABELS}, so the correction is uncertain"
        for verdict, count in (("passed", errors.passed), ("failed", errors.failed))
        if count < FEW_LABELS
    ]
    if tasks < 2:
        warnings.append("one task only: there is no interval over tasks")
    return tuple(warnings)
