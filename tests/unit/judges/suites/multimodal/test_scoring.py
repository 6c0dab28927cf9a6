from __future__ import annotations

from typing import Any

import pytest

from judges.suites.multimodal.readings import Reading
from judges.suites.multimodal.scoring import score_answer
from judges.suites.multimodal.seeact_parse import SeeActReply
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


def said(element: str, action: str = "TYPE", value: str = "rome") -> SeeActReply:
    return SeeActReply(element=element, action=action, value=value)


def test_the_right_letter_with_the_right_operation_is_a_success():
    verdict = score_answer(row(), said("B"))
    assert (verdict.picked, verdict.element) == (B, True)
    assert all(verdict.success(reading) for reading in Reading)


@pytest.mark.parametrize("element", ["A", "D", "E", "Z", "NO", "Invalid", "AA"])
def test_a_wrong_the_none_and_an_unknown_letter_are_wrong(element: str):
    verdict = score_answer(row(), said(element))
    assert not verdict.element
    assert verdict.f1[Reading.SET] == 1
    assert not verdict.success(Reading.SET)


def test_every_target_counts():
    assert score_answer(row(targets=(A, C)), said("C")).element


def test_the_right_element_is_known_by_its_id_and_not_its_words():
    assert score_answer(row(targets=('<a bnid="2">other</a>',)), said("B")).element
    assert not score_answer(row(targets=("<b><a bnid=2></a></b>",)), said("B")).element


def test_a_partly_right_value_is_no_success():
    verdict = score_answer(row(value="new york city"), said("B", value="New York"))
    assert verdict.f1[Reading.SET] == pytest.approx(6 / 7)
    assert not verdict.success(Reading.SET)


def test_the_value_of_a_click_counts_only_where_it_is_kept():
    verdict = score_answer(row(op="CLICK", value=""), said("B", "CLICK", "None"))
    assert verdict.success(Reading.SET)
    assert verdict.success(Reading.MULTISET)
    assert not verdict.success(Reading.SET_VALUE_KEPT)
    assert verdict.f1[Reading.SET_VALUE_KEPT] == pytest.approx(2 / 3)


def test_no_action_agrees_with_none_of_the_operations():
    assert score_answer(row(op="CLICK", value=""), said("B", "None", "")).f1[Reading.SET] == 0
