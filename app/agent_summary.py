"""Summary, scorecard and headline figures of one agent, computed from its judged answers.

Pure functions. ``judges.public_summary`` implements the averages of the public toolkit. This module adds answers
without a result, score bounds, cost and time. The formulas of the headline figures are in
``judges.analysis.statistics``. The first call of ``full_summary`` imports numpy and scipy, so do not call it on an
event loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from typing import Any

from judges import public_summary as public
from judges.analysis.statistics.headline import Figure, Headline, PassEstimate, Trial, headline
from judges.analysis.statistics.intervals import LEVEL, Interval
from judges.errors import installed
from judges.public_summary import ScoredAnswer, Summary
from rubrics.result_json import leaves_of
from rubrics.scoring import Score, bounded_score
from rubrics.verdict import Outcome, Usage

_SUMMARY_FIELDS = ("id", "status", "score", "final_score", "model", "judge_model", "timing", "usage")
_OPEN_LEAF_FIELDS = ("outcome", "reason", "reasoning", "sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOutcome:
    """Outcome of one answer: a ``result`` (JSON as in the HTTP API, or its ``summary_fields``), or None and an
    ``error_code``.

    ``answer_name`` ends in ``.md``. ``words`` is the word count of the answer.
    """

    task_id: str
    answer_name: str
    words: int = 0
    result: Mapping[str, Any] | None = None
    error_code: str | None = None

    @property
    def complete(self) -> bool:
        return self.result is not None and self.result.get("status", "complete") == "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardRow:
    """Scorecard row of one agent.

    ``partial``, ``success`` and ``pass_at_k`` are in [0, 1], or None if the agent has no answers. ``k`` is the number
    of runs. ``pass_at_k`` is over the tasks with all runs, None without any; ``missing_runs`` lists the answers, as
    task and name, that the other tasks lack. ``nothing_applies`` counts answers without a score, which no figure
    includes. ``incomplete`` counts answers with leaves that were not judged,
    ``without_result`` answers that ended in an error. ``usage.usd`` is None if a price is unknown.
    """

    agent: str
    tasks: int
    answers: int
    k: int
    partial: Score | None
    success: Score | None
    pass_at_k: Score | None
    missing_runs: tuple[tuple[str, str], ...]
    nothing_applies: int
    incomplete: int
    without_result: int
    leaves_not_judged: int
    seconds: float
    usage: Usage

    @property
    def answers_not_judged(self) -> int:
        return self.incomplete + self.without_result


def score_of(result: Mapping[str, Any] | None) -> Score | None:
    """Return the score of a result with its bounds; None if nothing applies. Without a result the bounds are 0 and 1.

    A result of the public toolkit has a single number, so both bounds equal the score.
    """
    if result is None:
        return Score(value=None, low=0.0, high=1.0)
    score = result.get("score")
    if isinstance(score, Mapping):
        if score["low"] is None:
            return None
        return Score(value=score["value"], low=score["low"], high=score["high"])
    final = float(result["final_score"])
    return Score(value=final, low=final, high=final)


def summary_fields(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a result with only what summaries, scorecards and lists of unjudged claims read.

    A result has about 100 KB, and a run has hundreds of them. The tree consists of its leaves.
    """
    pages = [page for page in result.get("pages") or () if page.get("outcome") != "ok"]
    checks = [_leaf_summary(leaf) for leaf in leaves_of(result)]
    return {
        **{name: result[name] for name in _SUMMARY_FIELDS if name in result},
        "pages": [{name: page.get(name) for name in ("url", "outcome", "detail", "gone")} for page in pages],
        "eval_breakdown": [{"verification_tree": {"children": checks}}] if checks else [],
    }


def _leaf_summary(leaf: Mapping[str, Any]) -> dict[str, Any]:
    names = _OPEN_LEAF_FIELDS if leaf.get("outcome") == Outcome.NOT_JUDGED else ("outcome",)
    return {name: leaf.get(name) for name in names}


def judge_of(outcome: AnswerOutcome) -> str | None:
    """Return the name of the judge, a model or a jury; None without a result. A result may not name its judge."""
    if outcome.result is None:
        return None
    return str(outcome.result.get("model") or outcome.result.get("judge_model") or "unknown")


def judges_of(outcomes: Iterable[AnswerOutcome]) -> dict[str, int]:
    """Return the number of answers by judge, most first."""
    return dict(Counter(judge for judge in map(judge_of, outcomes) if judge is not None).most_common())


def by_judge(outcomes: Iterable[AnswerOutcome], judge: str | None) -> list[AnswerOutcome]:
    """Return the answers of one judge (None: of all). Answers without a result have no judge and always count."""
    return [one for one in outcomes if judge is None or judge_of(one) in (judge, None)]


def leaves_not_judged(result: Mapping[str, Any]) -> int:
    return sum(leaf.get("outcome") == Outcome.NOT_JUDGED for leaf in leaves_of(result))


def seconds_of(result: Mapping[str, Any] | None) -> float:
    """Return the seconds that judging an answer took, including capture; 0.0 if unknown."""
    timing = {} if result is None else result.get("timing") or {}
    return float(timing.get("total_s") or 0.0)


def usage_of(result: Mapping[str, Any] | None) -> Usage:
    usage = {} if result is None else result.get("usage") or {}
    return Usage(
        calls=usage.get("calls", 0),
        cached_calls=usage.get("cached_calls", 0),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        usd=usage.get("usd", 0.0),
    )


def scorecard_row(agent: str, outcomes: Iterable[AnswerOutcome]) -> ScorecardRow:
    """Return the scorecard row of one agent. An answer without a result has the bounds 0 and 1."""
    known = tuple(outcomes)
    tasks, names = sorted({one.task_id for one in known}), sorted({one.answer_name for one in known})
    present = {(one.task_id, one.answer_name) for one in known}
    missing = tuple((task, name) for task in tasks for name in names if (task, name) not in present)
    partial_tasks = {task for task, _ in missing}
    return ScorecardRow(
        agent=agent,
        tasks=len(tasks),
        answers=len(known),
        k=len(names),
        partial=_bounded(known, lambda each: public.mean_over_runs(each, lambda one: one.score).mean),
        success=_bounded(known, lambda each: public.mean_over_runs(each, lambda one: one.success).mean),
        pass_at_k=_bounded([one for one in known if one.task_id not in partial_tasks], public.pass_at_k),
        missing_runs=missing,
        nothing_applies=sum(score_of(one.result) is None for one in known),
        incomplete=sum(one.result is not None and not one.complete for one in known),
        without_result=sum(one.result is None for one in known),
        leaves_not_judged=sum(leaves_not_judged(one.result) for one in known if one.result is not None),
        seconds=sum(seconds_of(one.result) for one in known),
        usage=reduce(add, (usage_of(one.result) for one in known), Usage()),
    )


def agent_summary(agent: str, outcomes: Iterable[AnswerOutcome]) -> Summary:
    """Return the summary of an agent: the fields of the public toolkit and ours.

    The averages are None if no answer has a result.
    """
    known = sorted(outcomes, key=lambda one: (one.task_id, one.answer_name))
    row = scorecard_row(agent, known)
    return (public.agent_summary(agent, scored_answers(known)) or _nothing_scored(agent)) | {
        "num_answers": row.answers,
        "not_judged": {
            "answers": row.answers_not_judged,
            "incomplete": row.incomplete,
            "without_result": row.without_result,
            "leaves": row.leaves_not_judged,
        },
        "nothing_applies": row.nothing_applies,
        "without_result": [
            {"task_id": one.task_id, "answer_name": one.answer_name, "error_code": one.error_code}
            for one in known
            if one.result is None
        ],
        "missing_runs": [{"task_id": task_id, "answer_name": name} for task_id, name in row.missing_runs],
        "bounds": {
            "score": _as_json(row.partial),
            "success": _as_json(row.success),
            "pass_at_k": _as_json(row.pass_at_k),
        },
        "usage": asdict(row.usage),
        "seconds": round(row.seconds, 3),
    }


def scored_answers(outcomes: Iterable[AnswerOutcome]) -> list[ScoredAnswer]:
    """Return the answers that have a result and a score, with the score that the public toolkit would report."""
    return [
        _scored(outcome, float(outcome.result["final_score"]))
        for outcome in outcomes
        if outcome.result is not None and score_of(outcome.result) is not None
    ]


def _bounded(known: Sequence[AnswerOutcome], average: Callable[[list[ScoredAnswer]], float]) -> Score | None:
    """Return ``average`` with bounds: over the lowest and over the highest score of each answer that has one."""
    scores = [(one, score) for one in known if (score := score_of(one.result)) is not None]
    if not scores:
        return None
    low = average([_scored(one, score.low) for one, score in scores])
    high = average([_scored(one, score.high) for one, score in scores])
    return bounded_score(low, high)


def _scored(outcome: AnswerOutcome, score: float) -> ScoredAnswer:
    return ScoredAnswer(task_id=outcome.task_id, answer_name=outcome.answer_name, score=score, words=outcome.words)


def _as_json(score: Score | None) -> Summary | None:
    if score is None:
        return None
    places = public.SHARE_DECIMALS
    value = None if score.value is None else round(score.value, places)
    return {"value": value, "low": round(score.low, places), "high": round(score.high, places)}


def _nothing_scored(agent: str) -> Summary:
    averages = ("avg_score", "success_rate", "avg_answer_word_count")
    unknown = {name: None for average in averages for name in (average, f"{average}_std")}
    return {"agent_name": agent, "num_tasks": 0, "num_runs": 0, **unknown, "per_run": {}, "tasks": {}}


def full_summary(
    agent: str, outcomes: Iterable[AnswerOutcome], *, unfinished: int = 0, resampled: bool = True
) -> Summary:
    """Return the summary of an agent with judges and ``statistics``. ``unfinished``: number of unfinished jobs."""
    known = list(outcomes)
    statistics = statistics_json(known, resampled=resampled)
    return agent_summary(agent, known) | {
        "judges": judges_of(known), "unfinished": unfinished, "statistics": statistics
    }  # fmt: skip


def statistics_json(outcomes: Sequence[AnswerOutcome], *, resampled: bool = True) -> dict[str, Any] | None:
    """Return the headline figures with bounds and intervals, or None without answers or the extra ``statistics``.

    ``resampled`` adds the bootstrap intervals, which take about 0.1 s per agent.
    """
    if not installed("statistics"):
        return None
    trials = [trial for outcome in outcomes if (trial := trial_of(outcome)) is not None]
    figures = headline(trials, resampled=resampled)
    if figures is None:
        return None
    not_judged = sum(not outcome.complete for outcome in outcomes)
    return {
        "level": LEVEL,
        "tasks": figures.tasks,
        "answers": figures.answers,
        "not_judged": {"answers": not_judged, "share": not_judged / figures.answers},
        **_figures(figures),
        "smallest_detectable_difference": figures.detectable,
        "warnings": list(figures.warnings),
    }


def trial_of(outcome: AnswerOutcome) -> Trial | None:
    """Return the answer with the bounds of its score; None if nothing applies."""
    score = score_of(outcome.result)
    return (
        None
        if score is None
        else Trial(task_id=outcome.task_id, run=outcome.answer_name, low=score.low, high=score.high)
    )


def interval_json(interval: Interval | None) -> Mapping[str, Any] | None:
    return None if interval is None else asdict(interval)


def _figures(figures: Headline) -> dict[str, Any]:
    return {
        "score": _figure(figures.score),
        "success": _figure(figures.success),
        "pass_at_k": [_pass_estimate(each) for each in figures.pass_at],
        "pass_hat_k": [_pass_estimate(each) for each in figures.pass_hat],
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "tasks": figure.tasks,
        "interval": interval_json(figure.interval),
        "student_t": interval_json(figure.student),
        "bootstrap": interval_json(figure.bootstrap),
    }


def _pass_estimate(estimate: PassEstimate) -> dict[str, Any]:
    return {
        "k": estimate.k,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "tasks": estimate.tasks,
        "interval": interval_json(estimate.interval),
    }
