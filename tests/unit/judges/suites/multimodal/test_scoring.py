from __future__ import annotations

from typing import Any

import pytest

from judges.suites.multimodal.dialogue import SeeActReply
from judges.suites.multimodal.scoring import is_one_of, operation_f1, operation_string, root_id, score_answer, token_ids
from judges.suites.multimodal.tilde_rows import TildeRow
from judges.suites.rules import Counting, Reading

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


@pytest.mark.parametrize("element", ["A", "E", "Invalid"])
def test_wrong_none_and_unknown_letters_are_wrong(element: str):
    verdict = score_answer(row(), seeact_reply(element))
    assert not verdict.element_correct
    assert verdict.f1[Reading.SET] == 1
    assert not verdict.success(Reading.SET)


def test_value_of_a_click_counts_only_in_value_kept_readings():
    verdict = score_answer(row(op="CLICK", value=""), seeact_reply("B", "CLICK", "None"))
    assert verdict.success(Reading.SET)
    assert verdict.success(Reading.MULTISET)
    assert not verdict.success(Reading.SET_VALUE_KEPT)
    assert verdict.f1[Reading.SET_VALUE_KEPT] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # Known tokens of cl100k_base.
        ("type new york city", [1337, 502, 50672, 3363]),
        ("type zürich hb", [1337, 1167, 5297, 718, 46235]),
    ],
)
def test_token_ids_equal_those_of_the_published_vocabulary(text: str, ids: list[int]):
    assert list(token_ids(text)) == ids


@pytest.mark.parametrize(
    ("op", "value", "keep", "expected"),
    [
        ("CLICK", "None", False, "click"),
        ("CLICK", "None", True, "click none"),
        ("TYPE", "New York", False, "type new york"),
    ],
)
def test_operation_is_lower_case_and_a_click_has_no_value_by_default(op: str, value: str, keep: bool, expected: str):
    assert operation_string(op, value, keep_click_value=keep) == expected


@pytest.mark.parametrize(
    ("predicted", "gold", "as_set", "as_multiset"),
    [
        ("type new york", "type new york city", 6 / 7, 6 / 7),
        ("select $3,000 - $5,000", "select $3,000-$5,000", 12 / 14, 16 / 19),
        ("", "click", 0, 0),
    ],
)
def test_f1_counts_tokens_as_set_or_multiset(predicted: str, gold: str, as_set: float, as_multiset: float):
    assert operation_f1(predicted, gold, Counting.SET) == pytest.approx(as_set)
    assert operation_f1(predicted, gold, Counting.MULTISET) == pytest.approx(as_multiset)


FOX = "<a bnid=36929><span bnid=36931><text bnid=36932>Fox Terrier (Smooth)</text></span></a>"


@pytest.mark.parametrize(
    ("element", "id"),
    [
        (FOX, "36929"),
        ('<div bnid="30997" role="dialog">', "30997"),
        ("<input bnid=7/>", "7"),
        ("<a><b bnid=2></b></a>", None),
        ("text bnid=3", None),
    ],
)
def test_id_of_the_outermost_element_is_read(element: str, id: str | None):
    assert root_id(element) == id


def test_elements_are_compared_by_id():
    assert is_one_of("<a bnid=1><text bnid=2>x</text></a>", ["<b bnid=3/>", '<a bnid="1">other words</a>'])
    assert not is_one_of("<a bnid=1>x</a>", ["<a bnid=11>x</a>", "<b><a bnid=1>x</a></b>"])


def test_elements_without_an_id_are_compared_by_text():
    assert is_one_of("<a>x</a>", ["<a>x</a>"])
    assert not is_one_of("<a>x</a>", ["<a bnid=1>x</a>"])


def test_no_element_matches_an_empty_list_of_targets():
    assert not is_one_of(FOX, [])
