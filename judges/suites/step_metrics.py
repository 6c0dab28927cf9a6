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
from typing import Any, Final, TypeAlias

from judges.analysis.statistics.bootstrap import ratio_intervals
from judges.analysis.statistics.intervals import wilson
from judges.analysis.statistics.paired import paired

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
    """Score of one website or domain: means over steps (``micro``), means over tasks (``macro``), and task success."""

    micro: Rates
    macro: Rates
    task_success: float
    steps: int
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteScore:
    """Aggregate score of the steps of a run.

    ``error_ratio`` is the share of tasks by number of failed steps; numbers above ``MAX_COUNTED_ERRORS`` share one
    key, and numbers without a task are omitted. ``websites`` and ``domains`` are sorted by name.
    """

    micro: Rates
    macro: Rates
    task_success: float
    steps: int
    tasks: int
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """Published figures of one system, in percent. None: not published."""

    system: str
    setting: str
    element: float
    operation: float | None = None
    step: float | None = None
    task_success: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "setting": self.setting,
            "element_acc": self.element,
            "op_f1": self.operation,
            "step_success": self.step,
            "task_success": self.task_success,
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
    by_task = grouped(steps, lambda step: step.task_id)
    return SuiteScore(
        micro=micro(steps),
        macro=macro(by_task.values()),
        task_success=task_success(by_task.values()),
        steps=len(steps),
        tasks=len(by_task),
        error_ratio=error_ratio(by_task.values()),
        websites=_groups(steps, lambda step: step.website),
        domains=_groups(steps, lambda step: step.domain),
    )


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


def task_success(tasks: Iterable[Sequence[StepScore]]) -> float:
    """Return the share of tasks in which every step succeeds."""
    return mean([float(all(step.success for step in steps)) for steps in tasks])


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


def _groups(steps: Sequence[StepScore], key: Callable[[StepScore], str]) -> dict[str, GroupScore]:
    """Score each group. A task belongs to one website, so it is counted within its group."""
    scores = {}
    for name, members in sorted(grouped(steps, key).items()):
        tasks = grouped(members, lambda step: step.task_id)
        scores[name] = GroupScore(
            micro=micro(members),
            macro=macro(tasks.values()),
            task_success=task_success(tasks.values()),
            steps=len(members),
            tasks=len(tasks),
        )
    return scores


def _by_size(item: tuple[str, int]) -> tuple[bool, str]:
    return item[0] == MANY_ERRORS, item[0]


RESAMPLES = 2000
MEANS = ("element", "operation", "step")

IntervalBounds: TypeAlias = dict[str, float]
"""Bounds of a 95 % interval: ``low`` and ``high``, both in [0, 1]."""


def task_bootstrap_intervals(
    steps: Sequence[StepScore], *, seed: int = 0, resamples: int = RESAMPLES
) -> Mapping[str, Mapping[str, IntervalBounds]] | None:
    """Return the intervals of the three means, or None if there are no steps.

    ``micro`` are means over steps, ``macro`` means over tasks.
    """
    if not steps:
        return None
    import numpy as np

    tasks = _by_task(steps)
    sums = np.array(
        [[sum(values) for values in zip(*((s.element, s.operation, float(s.success)) for s in task), strict=True)]
         for task in tasks]
    )  # fmt: skip
    sizes = np.array([len(task) for task in tasks], dtype=float)
    # Both use the same resamples. Micro: sums divided by step counts. Macro: means of tasks divided by 1 per task.
    micro = ratio_intervals(sums, sizes, seed=seed, resamples=resamples)
    macro = ratio_intervals(sums / sizes[:, None], np.ones(len(tasks)), seed=seed, resamples=resamples)
    return {"micro": _named(micro), "macro": _named(macro)}


def task_success_interval(steps: Sequence[StepScore]) -> IntervalBounds | None:
    """Return Wilson's interval of the share of tasks in which every step succeeds, or None if there are no steps."""
    tasks = _by_task(steps)
    interval = wilson(sum(all(step.success for step in task) for task in tasks), len(tasks))
    return None if interval is None else {"low": interval.low, "high": interval.high}


INTERVAL_METHOD: Final = "cluster bootstrap by task; Wilson for task success"


def _by_task(steps: Sequence[StepScore]) -> list[Sequence[StepScore]]:
    return list(grouped(steps, lambda step: step.task_id).values())


def _named(intervals: Sequence[tuple[float, float]]) -> dict[str, IntervalBounds]:
    return {name: {"low": low, "high": high} for name, (low, high) in zip(MEANS, intervals, strict=True)}


MEASURES: Final = {"element": "element_acc", "operation": "action_f1", "step": "step_acc"}
_MAX_CHANGED: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """Scores of one step in both runs: element, operation and step, each in [0, 1].

    ``positions`` are those of the step in both runs.
    """

    id: str
    task_id: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    positions: tuple[int | None, int | None] = (None, None)


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
    pairs = [_pair(id, a[id], b[id]) for id in scored]
    open_tasks = {str(records[id]["task_id"]) for records in (a, b) for id in records if id not in scored}
    return {
        "steps": len(pairs),
        "tasks": len({pair.task_id for pair in pairs}),
        "only_a": len(a) - len(shared),
        "only_b": len(b) - len(shared),
        "not_scored": len(shared) - len(pairs),
        **({} if not pairs else _means(pairs, seed)),
        "task_success": _task_success([pair for pair in pairs if pair.task_id not in open_tasks], seed),
        "changes": _changes(pairs),
    }


def _is_scored(record: Mapping[str, Any]) -> bool:
    return record.get("status") == "scored" and all(record.get(name) is not None for name in MEASURES.values())


def _pair(id: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> StepPair:
    first, second = (tuple(float(record[name]) for name in MEASURES.values()) for record in (a, b))
    positions = (a.get("position"), b.get("position"))
    return StepPair(id=id, task_id=str(a["task_id"]), a=first, b=second, positions=positions)


def _means(pairs: Sequence[StepPair], seed: int) -> dict[str, Any]:
    as_tasks = [
        StepPair(
            id=members[0].task_id,
            task_id=members[0].task_id,
            a=tuple(mean([pair.a[nth] for pair in members]) for nth in range(len(MEASURES))),
            b=tuple(mean([pair.b[nth] for pair in members]) for nth in range(len(MEASURES))),
        )
        for members in _pairs_by_task(pairs)
    ]
    return {"micro": _differences(pairs, seed), "macro": _differences(as_tasks, seed)}


def _differences(pairs: Sequence[StepPair], seed: int) -> dict[str, Any]:
    """Return for each measure both means, their difference, its interval and p."""
    import numpy as np

    clusters = _pairs_by_task(pairs)
    sums = np.array([[sum(pair.b[nth] - pair.a[nth] for pair in members) for nth in range(len(pairs[0].a))]
                     for members in clusters])  # fmt: skip
    sizes = np.array([len(members) for members in clusters], dtype=float)
    ends = ratio_intervals(sums, sizes, seed=seed, resamples=RESAMPLES)
    names = tuple(MEASURES) if len(pairs[0].a) == len(MEASURES) else ("task",)
    out: dict[str, Any] = {}
    for nth, name in enumerate(names):
        test = paired([float(total) for total in sums[:, nth] / sizes])
        out[name] = {
            "a": mean([pair.a[nth] for pair in pairs]),
            "b": mean([pair.b[nth] for pair in pairs]),
            "difference": float(sums[:, nth].sum() / sizes.sum()),
            "interval_95": {"low": ends[nth][0], "high": ends[nth][1]} if len(clusters) > 1 else None,
            "p": None if test is None else test.sign_flip.p,
        }
    return out


def _task_success(pairs: Sequence[StepPair], seed: int) -> dict[str, Any] | None:
    place = list(MEASURES).index("step")
    tasks = [
        StepPair(
            id=members[0].task_id,
            task_id=members[0].task_id,
            a=(float(all(pair.a[place] for pair in members)),),
            b=(float(all(pair.b[place] for pair in members)),),
        )
        for members in _pairs_by_task(pairs)
    ]
    return {"tasks": len(tasks), **_differences(tasks, seed)["task"]} if tasks else None


def _changes(pairs: Sequence[StepPair]) -> dict[str, Any]:
    """Return how many steps succeed in both runs, in one of them or in none, and the first ones that differ."""
    place = list(MEASURES).index("step")
    gained = [_changed(pair) for pair in pairs if pair.b[place] > pair.a[place]]
    lost = [_changed(pair) for pair in pairs if pair.b[place] < pair.a[place]]
    both = sum(pair.a[place] == pair.b[place] == 1.0 for pair in pairs)
    return {
        "both": both,
        "only_a": len(lost),
        "only_b": len(gained),
        "neither": len(pairs) - both - len(lost) - len(gained),
        "lost": lost[:_MAX_CHANGED],
        "gained": gained[:_MAX_CHANGED],
    }


def _changed(pair: StepPair) -> dict[str, Any]:
    return {"id": pair.id, "task_id": pair.task_id, "position_a": pair.positions[0], "position_b": pair.positions[1]}


def _pairs_by_task(pairs: Sequence[StepPair]) -> list[list[StepPair]]:
    groups: dict[str, list[StepPair]] = {}
    for pair in pairs:
        groups.setdefault(pair.task_id, []).append(pair)
    return list(groups.values())
