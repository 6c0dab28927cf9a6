"""Headline figures: tasks as the unit, bounds for not judged answers, and equality with the public figures."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.analysis.statistics.headline import (
    Figure,
    Headline,
    PassEstimate,
    Trial,
    bounded_mean,
    headline,
    task_values,
)
from judges.public_summary import ScoredAnswer, mean_over_runs, pass_at_k


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


@settings(max_examples=30, deadline=None)
@given(TRIALS)
def test_both_bounds_equal_the_public_figures(trials: list[Trial]):
    found = figures(*trials)
    for end in ("low", "high"):
        scored = [ScoredAnswer(task_id=one.task_id, answer_name=one.run, score=getattr(one, end)) for one in trials]
        assert getattr(found.score, end) == pytest.approx(mean_over_runs(scored, lambda one: one.score).mean)
        assert getattr(found.success, end) == pytest.approx(mean_over_runs(scored, lambda one: one.success).mean)
        most = max(sum(other.task_id == one.task_id for other in trials) for one in trials)
        if all(sum(other.task_id == one.task_id for other in trials) == most for one in trials):
            assert getattr(found.pass_at[-1], end) == pytest.approx(pass_at_k(scored))


@settings(max_examples=30, deadline=None)
@given(TRIALS)
def test_every_interval_contains_its_figure_and_stays_in_range(trials: list[Trial]):
    found = figures(*trials)
    quoted: list[Figure | PassEstimate] = [*found.pass_at, *found.pass_hat, found.score, found.success]
    for figure in quoted:
        assert 0 <= figure.interval.low <= figure.low + 1e-9
        assert figure.high - 1e-9 <= figure.interval.high <= 1


def test_more_answers_to_one_task_do_not_narrow_the_interval():
    """Ten identical answers to each of two tasks count as two tasks."""
    once = figures(trial("a", 1, 1.0), trial("b", 1, 0.0))
    often = figures(*(trial(task, run, score) for task, score in (("a", 1.0), ("b", 0.0)) for run in range(10)))
    assert once.score.student is not None and often.score.student is not None
    assert (once.score.student.low, once.score.student.high) == (often.score.student.low, often.score.student.high)
    assert often.success.interval.low == pytest.approx(once.success.interval.low)
    assert often.score.interval.high == pytest.approx(once.score.interval.high)


def test_interval_is_that_of_the_task_means():
    found = figures(
        *(trial(task, run, score) for task, score in (("a", 1.0), ("b", 0.4), ("c", 0.0)) for run in (1, 2))
    )
    assert found.score.interval == bounded_mean([1.0, 0.4, 0.0])
    assert found.success.interval == bounded_mean([1.0, 0.0, 0.0])


def test_identical_scores_have_an_interval():
    found = figures(*(trial(task, 1, 1.0) for task in "abcd"))
    assert found.score.student is None and found.score.bootstrap is None
    assert (found.score.interval.low, found.score.interval.high) == (pytest.approx(0.025 ** (1 / 4)), 1.0)
    assert found.detectable is None


def test_run_with_few_tasks_widens_the_interval():
    """The second run has only one task, so that task makes up more than half of the figure."""
    even = figures(*(trial(task, 1, 0.5) for task in "abcdef"))
    uneven = figures(*(trial(task, 1, 0.5) for task in "abcdef"), trial("a", 2, 0.5))
    assert uneven.score.value == even.score.value == 0.5
    assert uneven.score.interval.low < even.score.interval.low
    assert uneven.score.interval.high > even.score.interval.high


TEN = [trial(task, 1, score) for task, score in zip("abcdefghij", [1.0, *[0.0, 0.5, 1.0] * 3], strict=True)]
EVEN = {
    "one run": TEN,
    "two runs": [*TEN, *(trial(one.task_id, 2, 0.25) for one in TEN)],
    "each task has two of three runs": [
        trial(task, run, run / 4) for task, runs in (("a", (1, 2)), ("b", (2, 3)), ("c", (1, 3))) for run in runs
    ],
    "one answer": TEN[:1],
}
UNEVEN = {
    "one task has three answers": (
        [*TEN, trial("a", 2, 1.0), trial("a", 3, 1.0)],
        0.85,
        "3.33 % to 70 %, as 2 tasks",
    ),
    "one task has no second answer": (
        [*TEN, *(trial(one.task_id, 2, 1.0) for one in TEN[:-1])],
        0.775,
        "5 % to 10.6 %, as 9.73 tasks",
    ),
    "two tasks": ([trial("a", 1, 1.0), trial("a", 2, 0.0), trial("b", 1, 0.0)], 0.25, "25 % to 75 %, as 1.6 tasks"),
}


@pytest.mark.parametrize("name", EVEN)
def test_tasks_with_equal_weights_give_no_warning(name: str):
    assert not any("weight" in warning for warning in figures(*EVEN[name]).warnings)


@pytest.mark.parametrize("name", UNEVEN)
def test_tasks_with_different_weights_give_a_warning(name: str):
    trials, value, says = UNEVEN[name]
    found = figures(*trials)
    assert found.score.value == pytest.approx(value)
    (warning,) = [warning for warning in found.warnings if "weight" in warning]
    assert says in warning


@pytest.mark.parametrize("name", UNEVEN)
def test_figure_and_intervals_of_uneven_runs_have_the_same_weights(name: str):
    """The weights are those of the public average: the mean over runs of the mean over tasks."""
    found = figures(*UNEVEN[name][0])
    by_task: dict[str, list[Trial]] = {}
    for one in UNEVEN[name][0]:
        by_task.setdefault(one.task_id, []).append(one)
    names = [[one.run for one in task] for task in by_task.values()]
    for figure, worth in ((found.score, lambda one: one.low), (found.success, lambda one: float(one.low == 1.0))):
        values, weights = task_values(names, [[worth(one) for one in task] for task in by_task.values()])
        assert figure.interval == bounded_mean(values, weights=weights)
        assert figure.student is None
        if figure.bootstrap is not None:
            assert figure.value is not None
            assert figure.bootstrap.low <= figure.value <= figure.bootstrap.high
    assert found.detectable is None


def test_few_tasks_give_a_warning():
    (warning,) = figures(*(trial(task, 1, 0.5) for task in "abcd")).warnings
    assert "4 tasks, fewer than 5" in warning
    assert figures(*(trial(task, 1, 0.5) for task in "abcde")).warnings == ()


def test_open_answer_gives_bounds_and_an_interval_over_both():
    low = figures(trial("a", 1, 1.0), trial("b", 1, 0.5), trial("c", 1, 0.0))
    high = figures(trial("a", 1, 1.0), trial("b", 1, 0.5), trial("c", 1, 1.0))
    found = figures(trial("a", 1, 1.0), trial("b", 1, 0.5), trial("c", 1, 0.0, 1.0))
    assert (found.score.value, found.score.low, found.score.high) == (None, low.score.value, high.score.value)
    assert found.score.interval.low == min(low.score.interval.low, high.score.interval.low)
    assert found.score.interval.high == max(low.score.interval.high, high.score.interval.high)


def test_open_answer_among_full_scores_keeps_the_upper_bound_at_one():
    found = figures(trial("a", 1, 1.0), trial("b", 1, 1.0), trial("c", 1, 0.0, 1.0))
    assert found.score.interval.high == 1.0
    assert found.score.student is None  # there is no t interval if all scores are equal


def test_pass_at_k_counts_only_tasks_with_enough_answers():
    found = figures(trial("a", 1, 1.0), trial("a", 2, 0.0), trial("b", 1, 1.0))
    assert [(one.k, one.value, one.tasks) for one in found.pass_at] == [(1, 0.75, 2), (2, 1.0, 1)]
    assert [(one.k, one.value, one.tasks) for one in found.pass_hat] == [(1, 0.75, 2), (2, 0.0, 1)]


def test_many_answers_are_reported_for_selected_k_only():
    found = figures(*(trial("a", run, 1.0) for run in range(57)))
    assert [one.k for one in found.pass_at] == [*range(1, 11), 20, 50, 57]


def test_figures_are_the_same_without_the_bootstrap():
    trials = [trial("a", 1, 1.0), trial("b", 1, 0.5), trial("c", 1, 0.0)]
    whole, quick = headline(trials), headline(trials, resampled=False)
    assert whole is not None and quick is not None
    assert whole.score.bootstrap is not None and quick.score.bootstrap is None
    assert quick.score.interval == whole.score.interval
