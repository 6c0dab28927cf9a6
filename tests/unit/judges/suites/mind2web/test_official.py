from __future__ import annotations

import pytest

from judges.suites.mind2web.report import official_results
from judges.suites.step_metrics import StepScore


def step(task: str, element: float, f1: float, *, website: str = "s", played: bool = True) -> StepScore:
    return StepScore(
        task_id=task,
        website=website,
        domain="d",
        element=element,
        operation=f1,
        success=element == f1 == 1,
        played=played,
    )


UNPLAYED = step("T2", 0, 0, played=False)


def test_results_have_the_published_keys():
    found = official_results([step("T1", 1, 1), step("T1", 0, 1), step("T2", 1, 0.5, website="t")])
    assert found == {
        "element_acc": pytest.approx(2 / 3),
        "action_f1": pytest.approx(2.5 / 3),
        "step_acc": pytest.approx(1 / 3),
        "marco_element_acc": 0.75,
        "marco_action_f1": 0.75,
        "marco_step_acc": 0.25,
        "error_ratio": {"1": 1.0},
        "acc_per_website": {"s": [0.5, 1], "t": [0.0, 1]},
    }


def test_task_success_is_the_share_without_errors_and_absent_at_zero():
    assert official_results([step("T1", 1, 1), step("T2", 1, 1), step("T3", 0, 1)])["error_ratio"]["0"] == 2 / 3
    assert "0" not in official_results([step("T1", 0, 1)])["error_ratio"]


def test_task_with_a_step_without_positives_cannot_succeed():
    assert official_results([step("T2", 1, 1), UNPLAYED, step("T2", 1, 1)])["error_ratio"] == {"1": 1.0}


def test_trailing_step_without_positives_is_ignored_only_in_compat_mode():
    played = [step("T1", 1, 1), step("T2", 1, 1)]
    clean, quirk = (official_results([*played, UNPLAYED], compat_trailing=compat) for compat in (False, True))
    assert clean["element_acc"] == quirk["element_acc"] == pytest.approx(2 / 3)
    assert (clean["marco_element_acc"], quirk["marco_element_acc"]) == (0.75, 1.0)
    assert (clean["error_ratio"], quirk["error_ratio"]) == ({"0": 0.5, "1": 0.5}, {"0": 1.0})
    assert (clean["acc_per_website"], quirk["acc_per_website"]) == ({"s": [0.75, 2]}, {"s": [1.0, 2]})
