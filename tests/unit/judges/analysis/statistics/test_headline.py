"""Headline figures: tasks as the unit, bounds for not judged answers, and equality with the public figures."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.agent_figures import ScoredAnswer, mean_over_runs
from judges.agent_figures import pass_at_k as public_pass_at_k
from judges.analysis.statistics.headline import (
    Headline,
    Trial,
    headline,
    pass_at_k,
    pass_hat_k,
)


def trial(task: str, run: int, low: float, high: float | None = None) -> Trial:
    return Trial(task_id=task, run=f"answer_{run}.md", low=low, high=low if high is None else high)


def figures(*trials: Trial) -> Headline:
    found = headline(trials)
    assert found is not None
    return found


SCORE = st.sampled_from([0.0, 0.25, 0.5, 1.0])
KEYS = st.tuples(st.sampled_from("abcde"), st.integers(1, 3))
TRIALS = st.dictionaries(KEYS, st.tuples(SCORE, SCORE), min_size=1, max_size=12).map(
    lambda found: [trial(task, run, min(ends), max(ends)) for (task, run), ends in found.items()]
)


def test_no_trials_have_no_figures():
    assert headline([]) is None


@settings(max_examples=10, deadline=None)
@given(TRIALS)
def test_both_bounds_equal_the_public_figures(trials: list[Trial]):
    found = figures(*trials)
    for end in ("low", "high"):
        scored = [ScoredAnswer(task_id=one.task_id, answer_name=one.run, score=getattr(one, end)) for one in trials]
        assert getattr(found.score, end) == pytest.approx(mean_over_runs(scored, lambda one: one.score))
        assert getattr(found.success, end) == pytest.approx(mean_over_runs(scored, lambda one: one.success))
        most = max(sum(other.task_id == one.task_id for other in trials) for one in trials)
        if all(sum(other.task_id == one.task_id for other in trials) == most for one in trials):
            assert getattr(found.pass_at[-1], end) == pytest.approx(public_pass_at_k(scored))


def test_more_answers_to_one_task_do_not_narrow_the_interval():
    """Ten identical answers to each of two tasks count as two tasks."""
    once = figures(trial("a", 1, 1.0), trial("b", 1, 0.0))
    often = figures(*(trial(task, run, score) for task, score in (("a", 1.0), ("b", 0.0)) for run in range(10)))
    assert once.score.student is not None and often.score.student is not None
    assert (once.score.student.low, once.score.student.high) == (often.score.student.low, often.score.student.high)
    assert often.success.interval.low == pytest.approx(once.success.interval.low)
    assert often.score.interval.high == pytest.approx(once.score.interval.high)


TEN = [trial(task, 1, score) for task, score in zip("abcdefghij", [1.0, *[0.0, 0.5, 1.0] * 3], strict=True)]
UNEVEN = {
    "one task has three answers": (
        [*TEN, trial("a", 2, 1.0), trial("a", 3, 1.0)],
        0.85,
        "3.33 % to 70 %, as 2 tasks",
    ),
    "two tasks": ([trial("a", 1, 1.0), trial("a", 2, 0.0), trial("b", 1, 0.0)], 0.25, "25 % to 75 %, as 1.6 tasks"),
}


@pytest.mark.parametrize("name", UNEVEN)
def test_tasks_with_different_weights_give_a_warning(name: str):
    trials, value, says = UNEVEN[name]
    found = figures(*trials)
    assert found.score.value == pytest.approx(value)
    (warning,) = [warning for warning in found.warnings if "weight" in warning]
    assert says in warning


def test_open_answer_gives_bounds_and_an_interval_over_both():
    low = figures(trial("a", 1, 1.0), trial("b", 1, 0.5), trial("c", 1, 0.0))
    high = figures(trial("a", 1, 1.0), trial("b", 1, 0.5), trial("c", 1, 1.0))
    found = figures(trial("a", 1, 1.0), trial("b", 1, 0.5), trial("c", 1, 0.0, 1.0))
    assert (found.score.value, found.score.low, found.score.high) == (None, low.score.value, high.score.value)
    assert found.score.interval.low == min(low.score.interval.low, high.score.interval.low)
    assert found.score.interval.high == max(low.score.interval.high, high.score.interval.high)


def test_pass_at_k_counts_only_tasks_with_enough_answers():
    found = figures(trial("a", 1, 1.0), trial("a", 2, 0.0), trial("b", 1, 1.0))
    assert [(one.k, one.value, one.tasks) for one in found.pass_at] == [(1, 0.75, 2), (2, 1.0, 1)]
    assert [(one.k, one.value, one.tasks) for one in found.pass_hat] == [(1, 0.75, 2), (2, 0.0, 1)]


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_estimates_equal_the_shares_of_all_subsets(case: tuple[int, int, int]):
    answers, successes, k = case
    outcomes = [True] * successes + [False] * (answers - successes)
    subsets = list(itertools.combinations(outcomes, k))
    assert pass_at_k(answers, successes, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))
    assert pass_hat_k(answers, successes, k) == pytest.approx(sum(map(all, subsets)) / len(subsets))
