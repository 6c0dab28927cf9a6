"""Figures of one agent, computed from its judged answers, and its summaries.

Pure functions, and the only place that averages scores over tasks and answers. ``public_summary`` has the figures of
the public toolkit. ``agent_summary`` adds answers without a result, score bounds, cost and time, ``full_summary`` the
headline figures of ``judges.analysis.statistics``. Its first call imports numpy and scipy, so do not call it on an
event loop. ``mind2web2.metrics`` computes the toolkit's ``metrics.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, reduce
from operator import add
from statistics import fmean, pstdev
from typing import Any, TypeAlias

from judges.analysis.statistics.headline import Figure, Trial, headline, interval_between
from judges.analysis.statistics.intervals import LEVEL, Interval
from judges.errors import installed
from rubrics.scoring import Score, bounded_score, is_success
from rubrics.tree_json import APPLIES, AVOIDED, leaf_states, leaves_of
from rubrics.verdict import Outcome, Usage

Summary: TypeAlias = dict[str, Any]
"""Summary as a JSON object."""

SHARE_DECIMALS = 4
WORD_DECIMALS = 1
TASK_AVERAGE_DECIMALS = 6
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
class ScoredAnswer:
    """Answer with a score in [0, 1]. ``words`` is the word count of its text, ``answer_name`` ends in ``.md``.

    Answers of the same name belong to the same run: ``answer_1.md`` of every task is the first run.
    """

    task_id: str
    answer_name: str
    score: float
    words: int = 0

    @property
    def success(self) -> bool:
        return is_success(self.score)


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean over runs, its population standard deviation (0.0 for one run), and the mean of each run."""

    mean: float
    std: float
    per_run: list[float | None]


def word_count(text: str) -> int:
    return len(text.split())


def over_runs(runs: Iterable[Iterable[float | None]]) -> Spread | None:
    """Average the known values of each run, then the runs. Return None if no value is known."""
    per_run = []
    for values in runs:
        known = [value for value in values if value is not None]
        per_run.append(fmean(known) if known else None)
    means = [mean for mean in per_run if mean is not None]
    return Spread(fmean(means), pstdev(means), per_run) if means else None


def runs_of(answers: Iterable[ScoredAnswer]) -> dict[str, list[ScoredAnswer]]:
    """Group answers by run (answer name), sorted by name."""
    by_name: dict[str, list[ScoredAnswer]] = {}
    for answer in answers:
        by_name.setdefault(answer.answer_name, []).append(answer)
    return dict(sorted(by_name.items()))


def spread_over_runs(answers: Iterable[ScoredAnswer], value: Callable[[ScoredAnswer], float]) -> Spread | None:
    """Average ``value`` over the tasks that have a run, then over the runs. Return None without answers."""
    return over_runs(map(value, run) for run in runs_of(answers).values())


def mean_over_runs(answers: Iterable[ScoredAnswer], value: Callable[[ScoredAnswer], float]) -> float | None:
    """Return the mean of ``spread_over_runs``; None without answers."""
    spread = spread_over_runs(answers, value)
    return None if spread is None else spread.mean


def pass_at_k(answers: Iterable[ScoredAnswer]) -> float | None:
    """Return the fraction of tasks with at least one successful answer; None without answers."""
    passed: dict[str, bool] = {}
    for answer in answers:
        passed[answer.task_id] = passed.get(answer.task_id, False) or answer.success
    return fmean(passed.values()) if passed else None


def task_summary(scores: Mapping[str, float]) -> list[Summary]:
    """Return the entries of a task's ``summary.json``, sorted by name. ``scores`` maps answer name to score."""
    return [
        {
            "answer_name": name,
            "score": score,
            "status": "success" if score > 0 else "failed",
            "success": is_success(score),
        }
        for name, score in sorted(scores.items())
    ]


def public_summary(agent_name: str, answers: Iterable[ScoredAnswer]) -> Summary:
    """Return an agent's ``summary.json``. Without answers, the averages are None."""
    scored = sorted(answers, key=lambda one: (one.task_id, one.answer_name))
    by_run, tasks = runs_of(scored), _tasks(scored)
    passed = {f"pass_at_{len(by_run)}": _rounded(pass_at_k(scored), SHARE_DECIMALS)} if scored else {}
    return {
        "agent_name": agent_name,
        "num_tasks": len(tasks),
        "num_runs": len(by_run),
        **_averages("avg_score", spread_over_runs(scored, lambda one: one.score), SHARE_DECIMALS),
        **_averages("success_rate", spread_over_runs(scored, lambda one: one.success), SHARE_DECIMALS),
        **passed,
        **_averages("avg_answer_word_count", spread_over_runs(scored, lambda one: one.words), WORD_DECIMALS),
        "per_run": {name: _run(run) for name, run in by_run.items()},
        "tasks": tasks,
    }


def _averages(name: str, spread: Spread | None, decimals: int) -> Summary:
    mean, std = (None, None) if spread is None else (spread.mean, spread.std)
    return {name: _rounded(mean, decimals), f"{name}_std": _rounded(std, decimals)}


def _rounded(value: float | None, decimals: int) -> float | None:
    return None if value is None else round(value, decimals)


def _run(run: Sequence[ScoredAnswer]) -> Summary:
    return {
        "num_tasks": len(run),
        "avg_score": round(fmean(one.score for one in run), SHARE_DECIMALS),
        "success_rate": round(fmean(one.success for one in run), SHARE_DECIMALS),
        "avg_word_count": round(fmean(one.words for one in run), WORD_DECIMALS),
    }


def _tasks(scored: Sequence[ScoredAnswer]) -> Summary:
    by_task: dict[str, list[ScoredAnswer]] = {}
    for answer in scored:
        by_task.setdefault(answer.task_id, []).append(answer)
    return {
        task_id: {
            "answers": [
                {"answer_name": one.answer_name, "score": one.score, "success": one.success, "word_count": one.words}
                for one in answers
            ],
            "best_score": max(one.score for one in answers),
            "avg_score": round(fmean(one.score for one in answers), TASK_AVERAGE_DECIMALS),
            "pass": any(one.success for one in answers),
        }
        for task_id, answers in by_task.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorecardRow:
    """Scorecard row of one agent.

    ``partial``, ``success`` and ``pass_at_k`` are in [0, 1], or None if the agent has no answers. ``k`` is the
    highest number of answers to a task. ``pass_at_k`` is over the tasks with k answers, None without any;
    ``missing_answers`` lists the answers, as task and name, that the other tasks lack. ``nothing_applies`` counts
    answers without a score, which no figure includes. ``incomplete`` counts answers with leaves that were not judged,
    ``without_result`` answers that ended in an error. ``usage.usd`` is None if a price is unknown.
    """

    agent: str
    tasks: int
    answers: int
    k: int
    partial: Score | None
    success: Score | None
    pass_at_k: Score | None
    missing_answers: tuple[tuple[str, str], ...]
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
    checks = [_leaf_summary(leaf, state) for leaf, state in leaf_states(result)]
    return {
        **{name: result[name] for name in _SUMMARY_FIELDS if name in result},
        "pages": [{name: page.get(name) for name in ("url", "outcome", "detail", "gone")} for page in pages],
        "eval_breakdown": [{"verification_tree": {"children": checks}}] if checks else [],
    }


def _leaf_summary(leaf: Mapping[str, Any], state: str) -> dict[str, Any]:
    names = _OPEN_LEAF_FIELDS if state == Outcome.NOT_JUDGED else ("outcome",)
    penalty = {"weight": -1.0} if state in (APPLIES, AVOIDED) else {}  # the penalty may be a group above the leaf
    return {name: leaf.get(name) for name in names} | penalty


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
        partial=_bounded(known, lambda each: mean_over_runs(each, lambda one: one.score)),
        success=_bounded(known, lambda each: mean_over_runs(each, lambda one: one.success)),
        pass_at_k=_bounded([one for one in known if one.task_id not in partial_tasks], pass_at_k),
        missing_answers=missing,
        nothing_applies=sum(score_of(one.result) is None for one in known),
        incomplete=sum(one.result is not None and not one.complete for one in known),
        without_result=sum(one.result is None for one in known),
        leaves_not_judged=sum(leaves_not_judged(one.result) for one in known if one.result is not None),
        seconds=sum(seconds_of(one.result) for one in known),
        usage=reduce(add, (usage_of(one.result) for one in known), Usage()),
    )


def agent_summary(agent: str, outcomes: Iterable[AnswerOutcome]) -> Summary:
    """Return the summary of an agent: the fields of the public toolkit and ours."""
    known = sorted(outcomes, key=lambda one: (one.task_id, one.answer_name))
    row = scorecard_row(agent, known)
    return public_summary(agent, scored_answers(known)) | {
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
        "missing_answers": [{"task_id": task_id, "answer_name": name} for task_id, name in row.missing_answers],
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


def _bounded(known: Sequence[AnswerOutcome], average: Callable[[list[ScoredAnswer]], float | None]) -> Score | None:
    """Return ``average`` with bounds: over the lowest and over the highest score of each answer that has one."""
    scores = [(one, score) for one in known if (score := score_of(one.result)) is not None]
    low = average([_scored(one, score.low) for one, score in scores])
    high = average([_scored(one, score.high) for one, score in scores])
    return None if low is None or high is None else bounded_score(low, high)


def _scored(outcome: AnswerOutcome, score: float) -> ScoredAnswer:
    return ScoredAnswer(task_id=outcome.task_id, answer_name=outcome.answer_name, score=score, words=outcome.words)


def _as_json(score: Score | None) -> Summary | None:
    if score is None:
        return None
    return {name: _rounded(value, SHARE_DECIMALS) for name, value in asdict(score).items()}


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
        "score": _figure(figures.score),
        "success": _figure(figures.success),
        "pass_at_k": [asdict(each) for each in figures.pass_at],
        "pass_hat_k": [asdict(each) for each in figures.pass_hat],
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


def mean_over_tasks(scores: Sequence[Score]) -> Score:
    """Return the mean of the scores of tasks."""
    return bounded_score(fmean(score.low for score in scores), fmean(score.high for score in scores))


def interval_over_tasks(scores: Sequence[Score]) -> Interval | None:
    """Return the 95 % interval of the mean of the scores of tasks; None without the extra ``statistics``.

    The first call imports scipy. Each takes up to 25 ms, and a repeated one no time.
    """
    if not installed("statistics"):
        return None
    return _interval(tuple(score.low for score in scores), tuple(score.high for score in scores))


@lru_cache(maxsize=2000)
def _interval(lows: Sequence[float], highs: Sequence[float]) -> Interval:
    return interval_between(lows, highs)


def interval_json(interval: Interval | None) -> Mapping[str, Any] | None:
    return None if interval is None else asdict(interval)


def _figure(figure: Figure) -> dict[str, Any]:
    fields = asdict(figure)
    student = fields.pop("student")
    return {**fields, "student_t": student}
