"""Scores of web steps: F1 over tokens, means over steps and over tasks, whole tasks, errors per task. Pure.

Every suite folds the same ``StepScore`` values; what a token is, and which steps count, is the suite's own business.
A step that nobody judged is no zero: it stays out of ``score`` and makes a pair of bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

MOST_COUNTED_ERRORS = 3
"""Tasks with more wrong steps than this are counted together, under ``MANY_ERRORS``."""
MANY_ERRORS = ">3"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScore:
    """One scored step. ``element`` and ``operation`` in [0, 1]; ``success`` is whether both are right.

    ``played`` is False for a step that was decided before anything could be asked: it has no positive candidate.
    ``judged`` is False where a fault kept us from finding out; the three scores then mean nothing.
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
    """A website or domain: means over its steps (``micro``) and over its tasks (``macro``), and whole tasks."""

    micro: Rates
    macro: Rates
    task_success: float
    steps: int
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteScore:
    """What a suite's steps come to.

    ``error_ratio`` is the share of tasks by their number of wrong steps, largest numbers together; numbers that no
    task has are left out. ``websites`` and ``domains`` are sorted by name.
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
    """The score if every step that was not judged were wrong (``low``), and if every one were right (``high``)."""

    low: SuiteScore
    high: SuiteScore
    not_judged: int

    @property
    def certain(self) -> SuiteScore | None:
        """The score, where nothing is unknown."""
        return None if self.not_judged else self.low


def token_f1(predicted: Iterable[Hashable], gold: Iterable[Hashable], *, multiset: bool = False) -> float:
    """The harmonic mean of precision and recall over tokens: over sets of them, or with repetitions counted.

    Two empty sides agree; an empty one and a full one do not (contracts/mind2web.md, 4.2).

    >>> token_f1("TYPE new york".split(), "TYPE new york city".split())
    0.8571428571428571
    >>> token_f1("ab", "aab"), token_f1("ab", "aab", multiset=True), token_f1("", ""), token_f1("", "a")
    (1.0, 0.8, 1.0, 0.0)
    """
    found, wanted = Counter(predicted), Counter(gold)
    if not multiset:
        found, wanted = Counter(found.keys()), Counter(wanted.keys())
    if not found and not wanted:
        return 1.0
    common = (found & wanted).total()
    if not common:
        return 0.0
    precision, recall = common / found.total(), common / wanted.total()
    return 2 * precision * recall / (precision + recall)


def score(steps: Sequence[StepScore]) -> SuiteScore:
    """Fold steps that are all judged; 0 everywhere where there are none."""
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
    """Fold steps of which some may not be judged."""

    def filled(value: float) -> SuiteScore:
        right = value == 1.0
        return score(
            [
                step if step.judged else replace(step, element=value, operation=value, success=right, judged=True)
                for step in steps
            ]
        )

    unknown = sum(not step.judged for step in steps)
    low = filled(0.0)
    return ScoreBounds(low=low, high=filled(1.0) if unknown else low, not_judged=unknown)


def grouped(steps: Iterable[StepScore], key: Callable[[StepScore], str]) -> dict[str, list[StepScore]]:
    """Steps by a key, in the order in which the keys appear."""
    groups: dict[str, list[StepScore]] = {}
    for step in steps:
        groups.setdefault(key(step), []).append(step)
    return groups


def micro(steps: Sequence[StepScore]) -> Rates:
    """Means over steps: long tasks count more."""
    return Rates(
        element=mean([step.element for step in steps]),
        operation=mean([step.operation for step in steps]),
        step=mean([float(step.success) for step in steps]),
    )


def macro(tasks: Iterable[Sequence[StepScore]]) -> Rates:
    """Means over tasks of the means over their steps: every task counts the same."""
    each = [micro(steps) for steps in tasks]
    return Rates(
        element=mean([rates.element for rates in each]),
        operation=mean([rates.operation for rates in each]),
        step=mean([rates.step for rates in each]),
    )


def task_success(tasks: Iterable[Sequence[StepScore]]) -> float:
    """The share of tasks in which every step succeeds."""
    return mean([float(all(step.success for step in steps)) for steps in tasks])


def error_ratio(tasks: Iterable[Sequence[StepScore]]) -> dict[str, float]:
    """The share of tasks by their number of steps that failed."""
    counts: Counter[str] = Counter()
    for steps in tasks:
        wrong = sum(not step.success for step in steps)
        counts[str(wrong) if wrong <= MOST_COUNTED_ERRORS else MANY_ERRORS] += 1
    return {name: count / counts.total() for name, count in sorted(counts.items(), key=_by_size)}


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def _groups(steps: Sequence[StepScore], key: Callable[[StepScore], str]) -> dict[str, GroupScore]:
    """Tasks are told apart within their group: a task belongs to one website."""
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
