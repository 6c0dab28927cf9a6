"""Aggregation of scores into the summaries of the public toolkit.

Pure functions over plain values. The only place that computes averages and rounds them: the compat package writes these
summaries to folders, the service returns them over HTTP and the command line prints them. For folders and file names,
see ``judges.result``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, TypeAlias

from rubrics.scoring import is_success

Summary: TypeAlias = dict[str, Any]
"""JSON object in the public toolkit's format."""

SHARE_DECIMALS = 4
WORD_DECIMALS = 1
TASK_AVERAGE_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredAnswer:
    """Answer with a result: ``score`` in [0, 1], ``words`` in its text, ``answer_name`` with ``.md``.

    Answers of the same name belong to the same run: ``answer_1.md`` of every task is the first run.
    """

    task_id: str
    answer_name: str
    score: float
    words: int = 0

    @property
    def success(self) -> bool:
        return is_success(self.score)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Mean over runs and its population standard deviation (0.0 for one run)."""

    mean: float
    std: float


def word_count(text: str) -> int:
    return len(text.split())


def answer_entry(answer_name: str, score: float) -> Summary:
    """Return the entry of one answer in a task's ``summary.json``."""
    return {
        "answer_name": answer_name,
        "score": score,
        "status": "success" if score > 0 else "failed",
        "success": is_success(score),
    }


def task_summary(scores: Mapping[str, float]) -> list[Summary]:
    """Return the entries of a task's ``summary.json``, sorted by name. ``scores`` maps answer name to score."""
    return [answer_entry(name, scores[name]) for name in sorted(scores)]


def merge(summaries: Iterable[tuple[str, str, Sequence[Summary]]]) -> dict[str, dict[str, list[Summary]]]:
    """Merge task summaries ``(agent, task_id, entries)`` into one object by task, then agent, both sorted."""
    merged: dict[str, dict[str, list[Summary]]] = {}
    for agent, task_id, entries in sorted(summaries, key=lambda one: (one[1], one[0])):
        merged.setdefault(task_id, {})[agent] = list(entries)
    return merged


def runs(answers: Iterable[ScoredAnswer]) -> dict[str, list[ScoredAnswer]]:
    """Group answers by run (answer name), sorted by name."""
    by_name: dict[str, list[ScoredAnswer]] = {}
    for answer in answers:
        by_name.setdefault(answer.answer_name, []).append(answer)
    return {name: by_name[name] for name in sorted(by_name)}


def mean_over_runs(answers: Iterable[ScoredAnswer], value: Callable[[ScoredAnswer], float]) -> Spread:
    """Average ``value`` over the tasks that have a run, then over the runs.

    Raises:
        ValueError: there is no answer.
    """
    averages = [fmean(value(answer) for answer in run) for run in runs(answers).values()]
    if not averages:
        raise ValueError("no scored answer to average")
    return Spread(mean=fmean(averages), std=pstdev(averages))


def pass_at_k(answers: Iterable[ScoredAnswer]) -> float:
    """Return the fraction of tasks with at least one successful answer.

    Raises:
        ValueError: there is no answer.
    """
    passed: dict[str, bool] = {}
    for answer in answers:
        passed[answer.task_id] = passed.get(answer.task_id, False) or answer.success
    if not passed:
        raise ValueError("no scored answer to count")
    return fmean(passed.values())


def agent_summary(agent_name: str, answers: Iterable[ScoredAnswer]) -> Summary | None:
    """Return an agent's ``summary.json``, or None if no answer has a result."""
    scored = sorted(answers, key=lambda one: (one.task_id, one.answer_name))
    if not scored:
        return None
    by_run = runs(scored)
    score = mean_over_runs(scored, lambda one: one.score)
    success = mean_over_runs(scored, lambda one: one.success)
    words = mean_over_runs(scored, lambda one: one.words)
    tasks = _tasks(scored)
    return {
        "agent_name": agent_name,
        "num_tasks": len(tasks),
        "num_runs": len(by_run),
        "avg_score": round(score.mean, SHARE_DECIMALS),
        "avg_score_std": round(score.std, SHARE_DECIMALS),
        "success_rate": round(success.mean, SHARE_DECIMALS),
        "success_rate_std": round(success.std, SHARE_DECIMALS),
        f"pass_at_{len(by_run)}": round(pass_at_k(scored), SHARE_DECIMALS),
        "avg_answer_word_count": round(words.mean, WORD_DECIMALS),
        "avg_answer_word_count_std": round(words.std, WORD_DECIMALS),
        "per_run": {name: _run(run) for name, run in by_run.items()},
        "tasks": tasks,
    }


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
