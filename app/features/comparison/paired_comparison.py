"""Paired comparison of agents, runs or results on shared tasks. Pure functions; results are JSON values.

Each task is a pair of mean scores over its answers. A difference is B - A. If an answer was not judged, the difference
of its task has bounds instead of a value. Such tasks are left out of the tests, and their possible effect is reported
next to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, TypeAlias

from judges.agent_figures import AnswerOutcome, interval_json, judges_of, score_of
from judges.analysis.flips import ComparableResult, Flip
from judges.analysis.statistics.intervals import LEVEL
from judges.analysis.statistics.paired import (
    MIN_TASKS_FOR_T,
    MIN_TASKS_FOR_TEST,
    Paired,
    holm,
    interval_over_bounds,
    paired,
)
from judges.result import score_json
from rubrics.scoring import Score, bounded_score, is_success

_Scores: TypeAlias = dict[str, list[Score]]
"""Scores of the answers by task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSide:
    """Side of a comparison. ``name`` is as requested: ``agent``, ``agent@run`` or a result id.

    ``judged`` has the leaves of its results, if they were requested.
    """

    name: str
    outcomes: Sequence[AnswerOutcome]
    judged: Sequence[ComparableResult] = ()


def comparison_json(
    first: ComparisonSide, others: Sequence[ComparisonSide], *, is_tested: bool = True
) -> dict[str, Any]:
    """Compare ``first`` with each of ``others``. The p values are Holm-corrected for the number of comparisons.

    ``is_tested`` adds the tests and intervals, which need the extra ``statistics``.
    """
    before, afters = _by_task(first), [_by_task(other) for other in others]
    figures = {
        name: [_FigureComparison(before, after, figure_of, is_tested=is_tested) for after in afters]
        for name, figure_of in _FIGURES.items()
    }
    corrected = {name: holm([each.p for each in compared]) for name, compared in figures.items()}
    return {
        "level": LEVEL,
        "a": _side_json(first),
        "comparisons": [
            {
                "b": _side_json(other),
                **{
                    name: compared[nth].to_json(corrected[name][nth], comparisons=len(others))
                    for name, compared in figures.items()
                },
                "tasks": [
                    {
                        "task_id": task.task_id,
                        "a": score_json(task.before),
                        "b": score_json(task.after),
                        "difference": score_json(task.difference),
                    }
                    for task in figures["score"][nth].tasks
                ],
                "only_a": sorted(before.keys() - after.keys()),
                "only_b": sorted(after.keys() - before.keys()),
            }
            for nth, (other, after) in enumerate(zip(others, afters, strict=True))
        ],
    }


def add_flips(comparison: dict[str, Any], flips: Sequence[Flip], *, max_listed: int) -> None:
    """Add the flips to one comparison of ``comparison_json``. All are counted; at most ``max_listed`` are listed."""
    by_task: dict[str, list[Flip]] = {}
    for flip in flips:
        by_task.setdefault(flip.task_id, []).append(flip)
    remaining = max_listed
    for task in comparison["tasks"]:
        task_flips = by_task.get(task["task_id"], [])
        listed = task_flips[:remaining]
        remaining -= len(listed)
        task["flipped"] = len(task_flips)
        task["flips"] = [asdict(flip) for flip in listed]
    comparison["flipped"] = len(flips)
    comparison["flips_left_out"] = len(flips) - (max_listed - remaining)


def _success(score: Score) -> Score:
    low, high = float(is_success(score.low)), float(is_success(score.high))
    return bounded_score(low, high)


_FIGURES: Mapping[str, Callable[[Score], Score]] = {"score": lambda score: score, "success": _success}


@dataclass(frozen=True, slots=True, kw_only=True)
class _TaskFigure:
    """One figure of one task on both sides."""

    task_id: str
    before: Score
    after: Score

    @property
    def difference(self) -> Score:
        return self.after.minus(self.before)


class _FigureComparison:
    """One figure over the shared tasks of both sides."""

    def __init__(
        self, before: _Scores, after: _Scores, figure_of: Callable[[Score], Score], *, is_tested: bool
    ) -> None:
        self._is_tested = is_tested
        self.tasks = [
            _TaskFigure(
                task_id=task,
                before=_mean_score(before[task], figure_of),
                after=_mean_score(after[task], figure_of),
            )
            for task in sorted(before.keys() & after.keys())
        ]
        differences = [task.difference for task in self.tasks]
        self._lows = [difference.low for difference in differences]
        self._highs = [difference.high for difference in differences]
        self.certain_differences = [difference.value for difference in differences if difference.value is not None]
        self.paired: Paired | None = paired(self.certain_differences) if is_tested else None

    @property
    def p(self) -> float:
        return 1.0 if self.paired is None else self.paired.sign_flip.p

    def to_json(self, p_holm: float, *, comparisons: int) -> dict[str, Any]:
        paired_test = self.paired
        return {
            "a": _mean([task.before for task in self.tasks]),
            "b": _mean([task.after for task in self.tasks]),
            "tasks": len(self.tasks),
            "certain": len(self.certain_differences),
            "difference": None if paired_test is None else paired_test.difference,
            "low": fmean(self._lows) if self._lows else None,
            "high": fmean(self._highs) if self._highs else None,
            "student_t": None if paired_test is None else interval_json(paired_test.student),
            "bootstrap": None if paired_test is None else interval_json(paired_test.bootstrap),
            "whatever_is_open": interval_json(
                interval_over_bounds(self._lows, self._highs) if self._is_tested else None
            ),
            "sign_flip": None if paired_test is None else _test_json(paired_test, p_holm),
            "smallest_detectable_difference": None if paired_test is None else paired_test.detectable,
            "verdict": self._verdict(p_holm),
            "warnings": list(self._warnings(comparisons)),
        }

    def _warnings(self, comparisons: int) -> Iterator[str]:
        """Yield the limits of what the number of tasks can show."""
        if self.paired is None:
            return
        n, test = self.paired.n, self.paired.sign_flip
        if test.smallest_p * comparisons >= 1 - LEVEL:
            yield (
                f"{test.n} of {n} tasks differ, so the sign-flip test cannot give a p below "
                f"{min(1.0, test.smallest_p * comparisons):.4g}{', Holm-corrected' if comparisons > 1 else ''}: "
                "no difference between these sides can be significant at 0.05"
            )
        if n < MIN_TASKS_FOR_T:
            yield (
                f"with {n} tasks, fewer than {MIN_TASKS_FOR_T}, the 95 % interval of the difference can be too narrow: "
                "rare and large differences are easily missed"
            )

    def _verdict(self, p_holm: float) -> str:
        if self.paired is None:
            return "nothing_to_compare" if self._is_tested else "not_tested"
        if p_holm < 1 - LEVEL:
            return "b_higher" if self.paired.difference > 0 else "b_lower"
        return "too_few_tasks" if len(self.certain_differences) < MIN_TASKS_FOR_TEST else "not_told_apart"


def direction(tasks: Sequence[Mapping[str, Any]]) -> str:
    """Describe on how many tasks of a comparison the second side is better or worse: "worse on both tasks".

    ``tasks``: those of the JSON document, with bounds of their differences.
    """
    if not tasks:
        return "not comparable without shared tasks"
    kinds = Counter(_kind(task["difference"]) for task in tasks)
    if len(kinds) == 1:
        [(kind, number)] = kinds.items()
        where = {1: "the only task", 2: "both tasks"}.get(number, f"all {number} tasks")
        return f"{kind} on {where}"
    return ", ".join(f"{kind} on {kinds[kind]}" for kind in ("better", "worse", "equal", "open") if kinds[kind])


def _kind(difference: Mapping[str, float]) -> str:
    if difference["low"] > 0:
        return "better"
    if difference["high"] < 0:
        return "worse"
    return "equal" if difference["low"] == difference["high"] else "open"


def _by_task(side: ComparisonSide) -> _Scores:
    grouped: dict[str, list[Score]] = {}
    for outcome in side.outcomes:
        score = score_of(outcome.result)
        if score is not None:  # otherwise nothing applies
            grouped.setdefault(outcome.task_id, []).append(score)
    return grouped


def _mean_score(scores: Sequence[Score], figure_of: Callable[[Score], Score]) -> Score:
    """Return the mean score over the answers of one task."""
    figures = [figure_of(score) for score in scores]
    low, high = fmean(figure.low for figure in figures), fmean(figure.high for figure in figures)
    return Score(value=low if all(figure.value is not None for figure in figures) else None, low=low, high=high)


def _mean(scores: Sequence[Score]) -> dict[str, float | None] | None:
    return score_json(_mean_score(scores, lambda score: score)) if scores else None


def _side_json(side: ComparisonSide) -> dict[str, Any]:
    return {
        "name": side.name,
        "tasks": len({outcome.task_id for outcome in side.outcomes}),
        "answers": len(side.outcomes),
        "not_judged": sum(not outcome.complete for outcome in side.outcomes),
        "judges": judges_of(side.outcomes),
    }


def _test_json(paired_test: Paired, p_holm: float) -> dict[str, Any]:
    test = paired_test.sign_flip
    return {
        "p": test.p,
        "p_holm": p_holm,
        "exact": test.exact,
        "patterns": test.patterns,
        "tasks_that_differ": test.n,
        "smallest_p": test.smallest_p,
        "method": test.method,
    }
