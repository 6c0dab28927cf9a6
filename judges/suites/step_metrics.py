"""Metrics of web steps: token F1, means over steps and tasks, task success and error counts.

All suites aggregate ``StepScore`` values; each suite defines its tokens and the steps that count. A step that was not
judged does not count 0: it widens the bounds of the score.

Steps of one task are not independent, so means over steps are bootstrapped by task.

Two runs of a suite are compared by step and by task. numpy is imported on first use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from judges.analysis.statistics.bootstrap import ratio_intervals
from judges.analysis.statistics.intervals import wilson
from judges.analysis.statistics.paired import sign_flip
from judges.late_libraries import np

if TYPE_CHECKING:
    from judges.analysis.statistics.bootstrap import Floats

MAX_COUNTED_ERRORS = 3
"""Tasks with more failed steps are counted together, under ``MANY_ERRORS``."""
MANY_ERRORS = ">3"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScore:
    """Score of one step. ``element`` and ``operation`` are in [0, 1]. ``success``: both are correct.

    ``played`` is False if no question was asked because the step has no positive candidate. ``judged`` is
    False if a fault prevented scoring; the three scores are then meaningless.
    """

    task_id: str
    website: str
    domain: str
    element: float
    operation: float
    success: bool
    played: bool = True
    judged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Three means in [0, 1]."""

    element: float
    operation: float
    step: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScore:
    """Score of a group of steps: means over steps (``micro``), means over tasks (``macro``), and task success."""

    micro: Rates
    macro: Rates
    task_success: float
    steps: int
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteScore(GroupScore):
    """Score of all steps of a run.

    ``error_ratio`` is the share of tasks by number of failed steps; numbers above ``MAX_COUNTED_ERRORS`` share one
    key, and numbers without a task are omitted. ``websites`` and ``domains`` are sorted by name.
    """

    error_ratio: Mapping[str, float]
    websites: Mapping[str, GroupScore]
    domains: Mapping[str, GroupScore]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBounds:
    """Bounds of a score: every step that was not judged counts as wrong (``low``) or as correct (``high``)."""

    low: SuiteScore
    high: SuiteScore
    not_judged: int

    @property
    def certain(self) -> SuiteScore | None:
        """The score, or None if any step was not judged."""
        return None if self.not_judged else self.low


def published_row(
    system: str,
    setting: str,
    element: float,
    operation: float | None = None,
    step: float | None = None,
    task_success: float | None = None,
) -> dict[str, Any]:
    """Return the published figures of one system, in percent. None: not published."""
    return {
        "system": system,
        "setting": setting,
        "element_acc": element,
        "op_f1": operation,
        "step_success": step,
        "task_success": task_success,
    }


def token_f1(predicted: Iterable[Hashable], gold: Iterable[Hashable], *, multiset: bool = False) -> float:
    """Return the harmonic mean of precision and recall over sets of tokens, or over multisets.

    Two empty sequences score 1, an empty and a non-empty one 0 (docs/mind2web-rules.md).

    >>> token_f1("TYPE new york".split(), "TYPE new york city".split())
    0.8571428571428571
    >>> token_f1("ab", "aab"), token_f1("ab", "aab", multiset=True), token_f1("", ""), token_f1("", "a")
    (1.0, 0.8, 1.0, 0.0)
    """
    predicted_counts, gold_counts = Counter(predicted), Counter(gold)
    if not multiset:
        predicted_counts, gold_counts = Counter(predicted_counts.keys()), Counter(gold_counts.keys())
    if not predicted_counts and not gold_counts:
        return 1.0
    common = (predicted_counts & gold_counts).total()
    if not common:
        return 0.0
    precision, recall = common / predicted_counts.total(), common / gold_counts.total()
    return 2 * precision * recall / (precision + recall)


def score(steps: Sequence[StepScore]) -> SuiteScore:
    """Aggregate steps that are all judged. Every figure is 0 if there are no steps."""
    return SuiteScore(
        **_means(steps),
        error_ratio=error_ratio(by_task(steps).values()),
        websites=_groups(steps, lambda step: step.website),
        domains=_groups(steps, lambda step: step.domain),
    )


def _means(steps: Sequence[StepScore]) -> dict[str, Any]:
    tasks = by_task(steps)
    successful = [float(all(step.success for step in task)) for task in tasks.values()]
    return {
        "micro": micro(steps),
        "macro": macro(tasks.values()),
        "task_success": mean(successful),
        "steps": len(steps),
        "tasks": len(tasks),
    }


def _groups(steps: Sequence[StepScore], key: Callable[[StepScore], str]) -> dict[str, GroupScore]:
    """Score each group. A task belongs to one website, so it is counted within its group."""
    return {name: GroupScore(**_means(members)) for name, members in sorted(grouped(steps, key).items())}


def bounds(steps: Sequence[StepScore]) -> ScoreBounds:
    """Aggregate steps, some of which may not be judged."""

    def filled(value: float) -> SuiteScore:
        success = value == 1.0
        return score(
            [
                step if step.judged else replace(step, element=value, operation=value, success=success, judged=True)
                for step in steps
            ]
        )

    unknown = sum(not step.judged for step in steps)
    low = filled(0.0)
    return ScoreBounds(low=low, high=filled(1.0) if unknown else low, not_judged=unknown)


def grouped(steps: Iterable[StepScore], key: Callable[[StepScore], str]) -> dict[str, list[StepScore]]:
    """Group steps by a key, in order of first appearance."""
    groups: dict[str, list[StepScore]] = {}
    for step in steps:
        groups.setdefault(key(step), []).append(step)
    return groups


def by_task(steps: Iterable[StepScore]) -> dict[str, list[StepScore]]:
    return grouped(steps, lambda step: step.task_id)


def micro(steps: Sequence[StepScore]) -> Rates:
    """Return the means over all steps. Tasks with more steps have more weight."""
    return Rates(
        element=mean([step.element for step in steps]),
        operation=mean([step.operation for step in steps]),
        step=mean([float(step.success) for step in steps]),
    )


def macro(tasks: Iterable[Sequence[StepScore]]) -> Rates:
    """Return the means over tasks of the means over their steps. Every task has the same weight."""
    each = [micro(steps) for steps in tasks]
    return Rates(
        element=mean([rates.element for rates in each]),
        operation=mean([rates.operation for rates in each]),
        step=mean([rates.step for rates in each]),
    )


def error_ratio(tasks: Iterable[Sequence[StepScore]]) -> dict[str, float]:
    """Return the share of tasks by number of failed steps."""
    counts: Counter[str] = Counter()
    for steps in tasks:
        wrong = sum(not step.success for step in steps)
        counts[str(wrong) if wrong <= MAX_COUNTED_ERRORS else MANY_ERRORS] += 1
    return {name: count / counts.total() for name, count in sorted(counts.items(), key=_by_size)}


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean, or 0 for an empty sequence."""
    return sum(values) / len(values) if values else 0.0


def _by_size(item: tuple[str, int]) -> tuple[bool, str]:
    return item[0] == MANY_ERRORS, item[0]


RESAMPLES = 2000
INTERVAL_METHOD: Final = "cluster bootstrap by task; Wilson for task success"
MEASURES: Final = {"element": "element_acc", "operation": "action_f1", "step": "step_acc"}
"""Measures, and their names in the records of steps."""
_STEP: Final = list(MEASURES).index("step")
_MAX_CHANGED: Final = 200


def intervals_95(steps: Sequence[StepScore], *, seed: int) -> dict[str, Any]:
    """Return the method, the seed and the 95 % intervals, each with ``low`` and ``high`` in [0, 1].

    ``micro`` are means over steps and ``macro`` means over tasks, by measure; both are bootstrapped by task.
    ``task_success`` is Wilson's interval.

    Raises:
        ValueError: there are no steps.
    """
    tasks = list(by_task(steps).values())
    sums = np.array([np.sum([(s.element, s.operation, float(s.success)) for s in task], axis=0) for task in tasks])
    sizes = np.array([len(task) for task in tasks], dtype=float)
    # Both use the same resamples. Micro: sums divided by step counts. Macro: means of tasks divided by 1 per task.
    micro = ratio_intervals(sums, sizes, seed=seed, resamples=RESAMPLES)
    macro = ratio_intervals(sums / sizes[:, None], np.ones(len(tasks)), seed=seed, resamples=RESAMPLES)
    success = wilson(sum(all(step.success for step in task) for task in tasks), len(tasks))
    return {
        "method": INTERVAL_METHOD,
        "seed": seed,
        **{
            name: {measure: _ends(*ends) for measure, ends in zip(MEASURES, intervals, strict=True)}
            for name, intervals in (("micro", micro), ("macro", macro))
        },
        "task_success": None if success is None else _ends(success.low, success.high),
    }


def _ends(low: float, high: float) -> dict[str, float]:
    return {"low": low, "high": high}


def compare_runs(
    first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]], *, seed: int = 0
) -> dict[str, Any]:
    """Compare the records of two runs over the steps that were scored in both. Differences are B - A.

    ``micro`` pairs steps and ``macro`` tasks; their intervals are cluster bootstraps by task. ``p`` is that of a
    sign-flip test over tasks. ``task_success`` counts only tasks whose steps were all scored in both runs.
    """
    a, b = ({str(record["id"]): record for record in records} for records in (first, second))
    shared = [id for id in a if id in b]
    scored = dict.fromkeys(id for id in shared if _is_scored(a[id]) and _is_scored(b[id]))
    open_tasks = {str(records[id]["task_id"]) for records in (a, b) for id in records if id not in scored}
    by_task: dict[str, list[Any]] = {}
    for id in scored:
        by_task.setdefault(str(a[id]["task_id"]), []).append([_figures(a[id]), _figures(b[id])])
    # Each array has the shape (steps, runs, measures).
    tasks = {task: np.array(pairs) for task, pairs in by_task.items()}
    means = [pairs.mean(axis=0, keepdims=True) for pairs in tasks.values()]
    succeed = [
        (pairs[:, :, _STEP] == 1.0).all(axis=0)[None, :, None].astype(float)
        for task, pairs in tasks.items()
        if task not in open_tasks
    ]
    return {
        "steps": len(scored),
        "tasks": len(tasks),
        "only_a": len(a) - len(shared),
        "only_b": len(b) - len(shared),
        "not_scored": len(shared) - len(scored),
        **({"micro": _differences(list(tasks.values()), seed), "macro": _differences(means, seed)} if scored else {}),
        "task_success": {"tasks": len(succeed), **_differences(succeed, seed, ("task",))["task"]} if succeed else None,
        "changes": _changes([(a[id], b[id]) for id in scored]),
    }


def _is_scored(record: Mapping[str, Any]) -> bool:
    return record.get("status") == "scored" and all(record.get(name) is not None for name in MEASURES.values())


def _figures(record: Mapping[str, Any]) -> list[float]:
    return [float(record[name]) for name in MEASURES.values()]


def _differences(clusters: Sequence[Floats], seed: int, names: Iterable[str] = MEASURES) -> dict[str, Any]:
    """Return for each measure both means, their difference, its interval and p. Clusters are the arrays of tasks."""
    sums = np.array([(pairs[:, 1] - pairs[:, 0]).sum(axis=0) for pairs in clusters])
    sizes = np.array([len(pairs) for pairs in clusters], dtype=float)
    means = np.concatenate(clusters).mean(axis=0)
    ends = ratio_intervals(sums, sizes, seed=seed, resamples=RESAMPLES)
    out: dict[str, Any] = {}
    for nth, name in enumerate(names):
        test = sign_flip([float(total) for total in sums[:, nth] / sizes])
        out[name] = {
            "a": float(means[0, nth]),
            "b": float(means[1, nth]),
            "difference": float(sums[:, nth].sum() / sizes.sum()),
            "interval_95": _ends(*ends[nth]) if len(clusters) > 1 else None,
            "p": None if test is None else test.p,
        }
    return out


def _changes(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Return how many steps succeed in both runs, in one of them or in none, and the first ones that differ."""
    gains = [float(b["step_acc"]) - float(a["step_acc"]) for a, b in pairs]
    gained, lost = (
        [
            {
                "id": str(a["id"]),
                "task_id": str(a["task_id"]),
                "position_a": a.get("position"),
                "position_b": b.get("position"),
            }
            for (a, b), gain in zip(pairs, gains, strict=True)
            if gain * sign > 0
        ]
        for sign in (1, -1)
    )
    both = sum(a["step_acc"] == b["step_acc"] == 1.0 for a, b in pairs)
    return {
        "both": both,
        "only_a": len(lost),
        "only_b": len(gained),
        "neither": len(pairs) - both - len(lost) - len(gained),
        "lost": lost[:_MAX_CHANGED],
        "gained": gained[:_MAX_CHANGED],
    }
