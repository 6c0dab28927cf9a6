"""Corrected scores: exact cases, and coverage by simulation with a judge of known error rates."""

from __future__ import annotations

import random
from typing import Any

import pytest

from judges.analysis.corrected_score import LabelledAnswer, corrected_score
from judges.analysis.overrides import judged_leaves, judged_tree
from judges.analysis.statistics.prediction_powered import JudgedUnit, corrected_share


def result(*leaves: dict[str, Any]) -> dict[str, Any]:
    tree = {"id": "root", "strategy": "parallel", "critical": False, "children": list(leaves)}
    return {"eval_breakdown": [{"verification_tree": tree}]}


def leaf(id: str, outcome: str, **fields: Any) -> dict[str, Any]:
    votes = [{"result": outcome == "passed"}] if outcome in ("passed", "failed") else []
    return {"id": id, "outcome": outcome, "votes": votes, "children": []} | fields


def answer(*leaves: dict[str, Any], task: str = "a", labels: dict[str, bool] | None = None) -> LabelledAnswer:
    root = judged_tree(result(*leaves))
    assert root is not None
    return LabelledAnswer(task_id=task, run="answer_1.md", root=root, labels=labels or {})


def test_score_with_a_label_on_every_leaf_is_that_of_the_labels() -> None:
    answers = [
        answer(leaf("x", "passed"), leaf("y", "failed"), task="a", labels={"x": True, "y": True}),
        answer(leaf("x", "passed"), leaf("y", "passed"), task="b", labels={"x": False, "y": True}),
    ]
    found = corrected_score(answers)
    assert (found.raw.value, found.low, found.high) == (0.75, 0.75, 0.75)
    assert (found.leaves.raw, found.leaves.corrected) == (0.75, 0.75)
    assert (found.errors.passed, found.errors.wrongly_passed) == (3, 1)
    assert (found.errors.failed, found.errors.wrongly_failed) == (1, 1)
    assert len(found.warnings) == 2


def test_critical_leaves_are_folded_in_every_imputation() -> None:
    """A judge that wrongly fails every critical leaf hides the whole score; a share of leaves would not show it."""
    leaves = [leaf("gate", "failed", critical=True), leaf("x", "passed"), leaf("y", "passed")]
    labels = [{"gate": True, "x": True, "y": True} if n < 30 else {} for n in range(60)]
    answers = [answer(*leaves, task=str(n), labels=labels[n]) for n in range(60)]
    found = corrected_score(answers)
    assert found.raw.value == 0.0
    assert found.low > 0.9
    assert found.leaves.corrected == pytest.approx(1.0, abs=0.01)


def test_leaf_behind_a_gate_that_a_label_opens_makes_bounds() -> None:
    skipped = leaf("behind", "skipped", blocked_by="gate")
    answers = [answer(leaf("gate", "failed"), skipped, task=task, labels={"gate": True}) for task in ("a", "b")]
    found = corrected_score(answers)
    assert (found.low, found.high) == (0.5, 1.0)


def test_leaves_decided_by_code_are_not_corrected() -> None:
    by_code = leaf("date", "failed", votes=[])
    answers = [answer(by_code, leaf("x", "passed"), task=task, labels={"x": True}) for task in "abcdefghijkl"]
    found = corrected_score(answers)
    assert found.leaves.units == 12
    assert found.low == found.high == 0.5


def test_without_any_label_there_is_no_correction() -> None:
    with pytest.raises(ValueError, match="label"):
        corrected_score([answer(leaf("x", "passed"))])
    with pytest.raises(ValueError, match="label"):
        corrected_score([])


TPR, TNR = 0.7, 0.95
SIMULATIONS = 120


def simulated(seed: int, *, tasks: int = 30, labelled: float = 0.5) -> tuple[list[LabelledAnswer], list[JudgedUnit]]:
    """Return an agent on tasks of differing difficulty, judged with known error rates, with labels on some leaves."""
    rng = random.Random(seed)
    answers, units = [], []
    for n in range(tasks):
        difficulty = rng.betavariate(4, 2)
        leaves, truths = [], {}
        for nth in range(5):
            truth = rng.random() < difficulty
            judge = rng.random() < (TPR if truth else 1 - TNR)
            leaves.append(leaf(str(nth), "passed" if judge else "failed", critical=nth == 0))
            truths[str(nth)] = truth
        labels = {key: truth for key, truth in truths.items() if rng.random() < labelled}
        answers.append(answer(*leaves, task=str(n), labels=labels))
        units += [
            JudgedUnit(cluster=str(n), judge=one["outcome"] == "passed", label=labels.get(one["id"])) for one in leaves
        ]
    return answers, units


def expected_score(draws: int = 200_000) -> float:
    """Return the true mean score: the first leaf is critical, the others have equal weights."""
    rng = random.Random(1)
    return sum((d := rng.betavariate(4, 2)) * d for _ in range(draws)) / draws


@pytest.mark.slow
def test_interval_of_the_corrected_score_covers_the_truth_and_that_of_the_raw_score_does_not() -> None:
    truth = expected_score()
    corrected = raw = 0
    for seed in range(SIMULATIONS):
        found = corrected_score(simulated(seed)[0], imputations=15)
        assert found.interval is not None
        corrected += found.interval.low <= truth <= found.interval.high
        raw += found.raw.interval.low <= truth <= found.raw.interval.high
    # 0.95 of 120 is 114; below 106 lies less than 0.2 % of a binomial distribution.
    assert corrected >= 106
    assert raw < 30


@pytest.mark.slow
def test_prediction_powered_interval_covers_the_true_share_and_is_narrower_than_labels_alone() -> None:
    truth = 4 / 6
    covered = narrower = 0
    for seed in range(400):
        units = simulated(seed, tasks=60, labelled=0.2)[1]
        found = corrected_share(units)
        alone = corrected_share([unit for unit in units if unit.label is not None])
        assert found.interval is not None and alone.interval is not None
        covered += found.interval.low <= truth <= found.interval.high
        narrower += found.interval.high - found.interval.low < alone.interval.high - alone.interval.low
    # 0.95 of 400 is 380; fewer than 365 would be three standard errors below.
    assert covered >= 365
    assert narrower > 200


def test_useless_judge_has_no_weight() -> None:
    rng = random.Random(3)
    units = [
        JudgedUnit(cluster=str(n), judge=rng.random() < 0.5, label=rng.random() < 0.8 if n < 300 else None)
        for n in range(2000)
    ]
    found = corrected_share(units)
    assert found.weight < 0.15
    assert found.corrected == pytest.approx(0.8, abs=0.07)


def test_judge_that_is_always_right_gives_the_share_of_its_verdicts() -> None:
    units = [
        JudgedUnit(cluster=str(n % 20), judge=n % 3 > 0, label=n % 3 > 0 if n % 7 == 0 else None) for n in range(600)
    ]
    found = corrected_share(units)
    assert found.raw == pytest.approx(2 / 3)
    assert found.corrected == pytest.approx(2 / 3, abs=0.02)
    assert found.interval is not None and found.raw_interval is not None


def test_one_task_has_no_interval() -> None:
    found = corrected_share([JudgedUnit(cluster="a", judge=True, label=True), JudgedUnit(cluster="a", judge=False)])
    assert found.interval is None and found.raw_interval is None
    assert judged_leaves(result(leaf("x", "passed")))["x"].id == "x"
