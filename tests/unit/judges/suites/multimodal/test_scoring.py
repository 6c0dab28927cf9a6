from __future__ import annotations

from typing import Any

import pytest

from judges.suites.multimodal.dialogue import SeeActReply
from judges.suites.multimodal.readings import Reading
from judges.suites.multimodal.scoring import score_answer
from judges.suites.multimodal.tilde_rows import TildeRow

A, B, C = (f"<a bnid={n}><text bnid={n}9>{n}</text></a>" for n in (1, 2, 3))


def row(**changes: Any) -> TildeRow:
    values: dict[str, Any] = {
        "place": "p",
        "position": 0,
        "task_id": "t",
        "step": 0,
        "split": "s",
        "task": "",
        "candidates": (A, B, C),
        "targets": (B,),
        "op": "TYPE",
        "value": "Rome",
        "website": "w",
        "domain": "d",
        "subdomain": "",
        "valid": True,
    }
    return TildeRow(**values | changes)


def seeact_reply(element: str, action: str = "TYPE", value: str = "rome") -> SeeActReply:
    return SeeActReply(element=element, action=action, value=value)


def test_correct_letter_and_operation_are_a_success():
    verdict = score_answer(row(), seeact_reply("B"))
    assert (verdict.picked, verdict.element_correct) == (B, True)
    assert all(verdict.success(reading) for reading in Reading)


@pytest.mark.parametrize("element", ["A", "D", "E", "Z", "NO", "Invalid", "AA"])
def test_wrong_none_and_unknown_letters_are_wrong(element: str):
    verdict = score_answer(row(), seeact_reply(element))
    assert not verdict.element_correct
    assert verdict.f1[Reading.SET] == 1
    assert not verdict.success(Reading.SET)


def test_every_target_is_correct():
    assert score_answer(row(targets=(A, C)), seeact_reply("C")).element_correct


def test_correct_element_is_recognized_by_id_and_not_by_text():
    assert score_answer(row(targets=('<a bnid="2">other</a>',)), seeact_reply("B")).element_correct
    assert not score_answer(row(targets=("<b><a bnid=2></a></b>",)), seeact_reply("B")).element_correct


def test_partly_correct_value_is_not_a_success():
    verdict = score_answer(row(value="new york city"), seeact_reply("B", value="New York"))
    assert verdict.f1[Reading.SET] == pytest.approx(6 / 7)
    assert not verdict.success(Reading.SET)


def test_value_of_a_click_counts_only_in_value_kept_readings():
    verdict = score_answer(row(op="CLICK", value=""), seeact_reply("B", "CLICK", "None"))
    assert verdict.success(Reading.SET)
    assert verdict.success(Reading.MULTISET)
    assert not verdict.success(Reading.SET_VALUE_KEPT)
    assert verdict.f1[Reading.SET_VALUE_KEPT] == pytest.approx(2 / 3)


def test_missing_action_has_an_f1_of_zero():
    assert score_answer(row(op="CLICK", value=""), seeact_reply("B", "None", "")).f1[Reading.SET] == 0
