"""The headline figures of one agent with how sure each is: score, success rate, pass@k, pass^k. Pure.

Tasks are the unit: answers to one task resemble each other. An answer that was not judged is neither 0 nor left out:
its score lies between two bounds, every figure is computed for both, and an interval holds both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from judges.statistics import bootstrap, student
from judges.statistics.detectable import unpaired_detectable
from judges.statistics.interval import Interval
from judges.statistics.passing import pass_at_k, pass_hat_k
from judges.statistics.wilson import clustered_share

_ALL_K_UP_TO = 10
_FURTHER_K = (20, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One answer: its run, which its name stands for, and the least and the greatest score it can have."""

    task_id: str
    run: str
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure in 0..1. ``value`` is None while answers that were not judged could change it.

    ``interval`` is the one to quote; ``student`` and ``bootstrap`` stand beside it. The bootstrap draws whole tasks and
    computes the figure itself anew; the other two take one mean for each task, which is the same figure wherever every
    task has every run. None where the data cannot give that interval.
    """

    value: float | None
    low: float
    high: float
    tasks: int
    interval: Interval | None
    student: Interval | None
    bootstrap: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """pass@k or pass^k over the tasks that have ``k`` answers or more."""

    k: int
    value: float | None
    low: float
    high: float
    tasks: int
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """All figures. ``detectable``: the smallest difference in score to another agent, judged on as many tasks of its
    own with the same spread, that would show in four of five experiments; None without a spread.
    """

    tasks: int
    answers: int
    score: Figure
    success: Figure
    pass_at: tuple[Passing, ...]
    pass_hat: tuple[Passing, ...]
    detectable: float | None


def headline(trials: Sequence[Trial], *, resampled: bool = True) -> Headline | None:
    """The figures over all answers of an agent; None without any. ``resampled`` False: no bootstrap, which is quick."""
    if not trials:
        return None
    by_task = _by_task(trials)
    means = [fmean(one.low for one in answers) for answers in by_task]
    score = _figure(by_task, lambda score: score, resampled=resampled)
    return Headline(
        tasks=len(by_task),
        answers=len(trials),
        score=score,
        success=_figure(by_task, _success, resampled=resampled, share=True),
        pass_at=_passing(by_task, pass_at_k),
        pass_hat=_passing(by_task, pass_hat_k),
        detectable=unpaired_detectable(stdev(means), len(means)) if score.student else None,
    )


def _by_task(trials: Sequence[Trial]) -> list[list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda one: (one.task_id, one.run)):
        found.setdefault(trial.task_id, []).append(trial)
    return list(found.values())


def _success(score: float) -> float:
    return float(score == 1.0)


def _figure(
    by_task: Sequence[Sequence[Trial]], worth: Callable[[float], float], *, resampled: bool, share: bool = False
) -> Figure:
    """A mean over runs of the mean over each run's tasks, with every open answer at its least, and at its most."""
    answers = sum(map(len, by_task))
    worlds = [
        [[worth(one.low) for one in task] for task in by_task],
        [[worth(one.high) for one in task] for task in by_task],
    ]
    runs = [[one.run for one in task] for task in by_task]
    low, high = (_over_runs(runs, world) for world in worlds)
    means = [[fmean(values) for values in world] for world in worlds]
    by_t = [student.mean_interval(world) for world in means]
    wilson = [clustered_share(world, answers=answers) for world in means]
    # Scores without a spread have no t interval; of values in 0..1 Wilson's says what can be said.
    quoted = wilson if share else [t or w for t, w in zip(by_t, wilson, strict=True)]
    return Figure(
        value=low if low == high else None,
        low=low,
        high=high,
        tasks=len(by_task),
        interval=_both(quoted),
        student=_both(by_t),
        bootstrap=_both(_resampled(runs, worlds)) if resampled else None,
    )


def _over_runs(runs: Sequence[Sequence[str]], values: Sequence[Sequence[float]]) -> float:
    """The public figure: averaged over the tasks that have a run, then over the runs in their order."""
    by_run: dict[str, list[float]] = {}
    for names, scores in zip(runs, values, strict=True):
        for name, score in zip(names, scores, strict=True):
            by_run.setdefault(name, []).append(score)
    return fmean(fmean(by_run[name]) for name in sorted(by_run))


def _resampled(
    runs: Sequence[Sequence[str]], worlds: Sequence[Sequence[Sequence[float]]]
) -> tuple[Interval | None, Interval | None]:
    """The bootstrap intervals of ``_over_runs`` in both worlds, which are mostly the same one."""
    low, high = worlds
    first = _bootstrap(runs, low)
    return first, first if low == high else _bootstrap(runs, high)


def _bootstrap(runs: Sequence[Sequence[str]], values: Sequence[Sequence[float]]) -> Interval | None:
    """None for one task, and where every answer came to the same."""
    if len(values) < 2 or len({score for task in values for score in task}) < 2:
        return None
    import numpy as np

    places = {name: nth for nth, name in enumerate(sorted({name for names in runs for name in names}))}
    sums, present = np.zeros((len(runs), len(places))), np.zeros((len(runs), len(places)))
    for nth, (names, scores) in enumerate(zip(runs, values, strict=True)):
        columns = [places[name] for name in names]
        sums[nth, columns], present[nth, columns] = scores, 1.0
    low, high = bootstrap.over_runs(sums, present)
    return Interval(low=low, high=high, method=bootstrap.method(len(values)))


def _passing(by_task: Sequence[Sequence[Trial]], chance: Callable[[int, int, int], float]) -> tuple[Passing, ...]:
    most = max(map(len, by_task))
    wanted = [k for k in range(1, most + 1) if k <= _ALL_K_UP_TO or k in _FURTHER_K or k == most]
    return tuple(_at(by_task, chance, k) for k in wanted)


def _at(by_task: Sequence[Sequence[Trial]], chance: Callable[[int, int, int], float], k: int) -> Passing:
    enough = [task for task in by_task if len(task) >= k]
    worlds = [
        [chance(len(task), sum(one.low == 1.0 for one in task), k) for task in enough],
        [chance(len(task), sum(one.high == 1.0 for one in task), k) for task in enough],
    ]
    low, high = (fmean(world) for world in worlds)
    interval = _both([clustered_share(world, answers=sum(map(len, enough))) for world in worlds])
    return Passing(k=k, value=low if low == high else None, low=low, high=high, tasks=len(enough), interval=interval)


def _both(worlds: Sequence[Interval | None]) -> Interval | None:
    """One interval that holds those of both worlds, within 0..1; None unless both have one."""
    first, second = worlds
    return None if first is None or second is None else first.hull(second).cut(0.0, 1.0)
