"""CI gates: passed, failed, or open because of answers that were not judged."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.features.comparison.cli_gate import (
    Gate,
    GateState,
    RegressionRule,
    Thresholds,
    gate_junit,
    gate_markdown,
    run_gate,
)
from app.features.comparison.paired_comparison import comparison_json
from judges.agent_figures import AnswerOutcome, full_summary
from tests.unit.app.features.comparison.test_paired_comparison import side

PASSED, FAILED, OPEN = GateState.PASSED, GateState.FAILED, GateState.OPEN


def evaluate(
    scores: dict[str, Any], *, before: dict[str, Any] | None = None, unfinished: int = 0, **wanted: Any
) -> Gate:
    now = side("new", **scores)
    summary = full_summary("walker", now.outcomes, unfinished=unfinished, resampled=False)
    comparison = None
    if before is not None:
        [comparison] = comparison_json(side("old", **before), [now])["comparisons"]
    return run_gate("walker", summary, Thresholds(**wanted), comparison=comparison)


def states(found: Gate) -> dict[str, GateState]:
    return {check.name: check.state for check in found.checks}


@pytest.mark.parametrize(
    ("scores", "state"),
    [
        ({"a": 1.0, "b": 0.6}, PASSED),
        ({"a": 1.0, "b": 0.59}, FAILED),
        ({"a": 1.0, "b": (0.0, 1.0)}, OPEN),
        ({"a": 0.5, "b": (0.0, 1.0)}, FAILED),  # even if all open leaves pass
        ({"a": 1.0, "b": None}, OPEN),
        ({"a": 0.6, "b": 0.8, "c": 1.0}, PASSED),  # the mean of these floats is below 0.8
    ],
)
def test_minimum_score(scores: dict[str, Any], state: GateState):
    assert states(evaluate(scores, min_score=0.8))["score"] is state


def test_answers_not_judged_leave_a_gate_open_unless_allowed():
    scores = {"a": 1.0, "b": (0.9, 1.0), "c": 1.0}
    assert evaluate(scores, min_score=0.5).state is OPEN
    assert evaluate(scores, min_score=0.5, max_not_judged=0.34).state is PASSED
    assert evaluate(scores, min_score=0.5, max_not_judged=0.33).state is FAILED


def test_lower_bound_is_that_of_the_interval():
    perfect = {f"t{nth}": 1.0 for nth in range(20)}
    assert states(evaluate(perfect, min_lower_bound=0.8))["lower bound"] is PASSED
    assert states(evaluate({"a": 1.0}, min_lower_bound=0.8))["lower bound"] is FAILED  # one task is weak evidence
    assert states(evaluate({**perfect, "a": (0.0, 1.0)}, min_lower_bound=0.95))["lower bound"] is OPEN


BEFORE = {f"t{nth}": 0.8 for nth in range(8)}
NOISY = dict(zip(BEFORE, [0.2, 1.0, 0.9, 0.6, 0.9, 0.7, 0.8, 0.8], strict=True))  # mean loss of 0.0625
CLEAR = {task: 0.5 - nth / 100 for nth, task in enumerate(BEFORE)}


@pytest.mark.parametrize(
    ("now", "rule", "state"),
    [
        (NOISY, RegressionRule.MEAN, FAILED),
        (NOISY, RegressionRule.SHOWN, PASSED),  # may be due to chance
        (CLEAR, RegressionRule.SHOWN, FAILED),
        (NOISY, RegressionRule.EXCLUDED, FAILED),  # a larger loss cannot be ruled out
        (BEFORE, RegressionRule.EXCLUDED, PASSED),
    ],
)
def test_regression_against_the_baseline(now: dict[str, float], rule: RegressionRule, state: GateState):
    assert states(evaluate(now, before=BEFORE, max_regression=0.05, regression_rule=rule))["regression"] is state


@pytest.mark.parametrize("rule", list(RegressionRule))
@pytest.mark.parametrize(("now", "state"), [(0.78, PASSED), (0.7799, FAILED)])
def test_loss_that_equals_the_maximum_passes(now: float, state: GateState, rule: RegressionRule):
    after, before = dict.fromkeys("abc", now), dict.fromkeys("abc", 0.8)
    assert 0.78 - 0.8 < -0.02  # in floats
    assert states(evaluate(after, before=before, max_regression=0.02, regression_rule=rule))["regression"] is state


@pytest.mark.parametrize("rule", list(RegressionRule))
def test_open_tasks_that_decide_a_regression_leave_it_open(rule: RegressionRule):
    now = {**NOISY, "t0": (0.0, 1.0), "t3": (0.0, 1.0), "t5": (0.0, 1.0)}
    assert (
        states(evaluate(now, before=BEFORE, max_regression=0.05, regression_rule=rule, max_not_judged=1.0))[
            "regression"
        ]
        is OPEN
    )


def test_missing_baseline_tasks_leave_a_gate_open():
    """Removing the hard tasks must not pass the gate."""
    now = {"t0": 0.8, "t1": 0.8}
    found = evaluate(now, before=BEFORE, max_regression=0.05)
    assert (states(found)["regression"], found.state) == (PASSED, OPEN)
    assert "t2, t3, t4, t5, t6, t7" in next(check.reason for check in found.checks if check.name == "tasks")
    assert evaluate(now, before=BEFORE, max_regression=0.05, allow_missing_tasks=True).state is PASSED


SCORES = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.sampled_from([0.0, 0.4, 0.7, 1.0]), st.sampled_from([0.0, 0.4, 0.7, 1.0])),
    min_size=1,
)  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(SCORES, SCORES, st.floats(0, 1), st.data())
def test_later_verdicts_never_reverse_a_decided_check_of_means(now, before, least, data):
    """Passed checks stay passed and failed ones stay failed, however the open leaves end."""
    spans = {task: (min(ends), max(ends)) for task, ends in now.items()}
    first = evaluate(spans, before=before_means(before), min_score=least, min_success=least, max_regression=least)
    settled = {
        task: data.draw(st.sampled_from(sorted({*ends, (ends[0] + ends[1]) / 2}))) for task, ends in spans.items()
    }
    last = evaluate(settled, before=before_means(before), min_score=least, min_success=least, max_regression=least)
    for name in ("score", "success rate", "regression"):
        if states(first)[name] is not OPEN:
            assert states(last)[name] is states(first)[name]


def before_means(before: dict[str, tuple[float, float]]) -> dict[str, float]:
    return {task: ends[0] for task, ends in before.items()}


def test_junit_report_has_one_test_per_check():
    found = evaluate({"a": 1.0, "b": (0.0, 1.0), "c": 0.0}, min_score=0.5, min_success=0.9)
    suite = ElementTree.fromstring(gate_junit(found)).find("testsuite")
    assert suite is not None
    assert {key: suite.attrib[key] for key in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "2",
    }
    kinds = {case.attrib["name"]: [child.tag for child in case] for case in suite}
    assert kinds == {"judged": ["error"], "score": ["error"], "success rate": ["failure"]}
    failure = suite.find("testcase/failure")
    assert failure is not None and "below 0.9" in failure.attrib["message"]


def test_reports_are_well_formed_for_any_folder_name():
    """Result folders may have any name."""
    outcomes = [AnswerOutcome(task_id="t", answer_name="answer_1.md", result={"final_score": 1.0})]
    name = "a|b <script>\x00\x1b[31m`*_x\n# h"
    found = run_gate(name, full_summary(name, outcomes, resampled=False), Thresholds(min_score=0.5))
    assert ElementTree.fromstring(gate_junit(found)).find("testsuite") is not None
    shown = gate_markdown(found)
    assert "<script>" not in shown and "a\\|b" in shown
    assert [line for line in shown.splitlines() if line.startswith("#")] == [shown.splitlines()[0]]
