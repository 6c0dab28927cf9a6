from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.suites.multimodal.readings import Counting, Reading
from judges.suites.multimodal.scoring import operation_f1, operation_string, token_ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # Known tokens of cl100k_base.
        ("click", [3763]),
        ("type new york city", [1337, 502, 50672, 3363]),
        ("select 2 guests", [1779, 220, 17, 15051]),
        ("type zürich hb", [1337, 1167, 5297, 718, 46235]),
        ("", []),
    ],
)
def test_token_ids_equal_those_of_the_published_vocabulary(text: str, ids: list[int]):
    assert list(token_ids(text)) == ids


def test_special_token_text_is_ordinary_text():
    assert len(token_ids("<|endoftext|>")) > 1


@pytest.mark.parametrize(
    ("op", "value", "keep", "expected"),
    [
        ("CLICK", "None", False, "click"),
        ("CLICK", "None", True, "click none"),
        ("TYPE", "New York", False, "type new york"),
        ("TYPE", "", False, "type"),
        ("None", "", False, "none"),
        ("SELECT", "2 Guests", True, "select 2 guests"),
    ],
)
def test_operation_is_lower_case_and_a_click_has_no_value_by_default(op: str, value: str, keep: bool, expected: str):
    assert operation_string(op, value, keep_click_value=keep) == expected


@pytest.mark.parametrize(
    ("predicted", "gold", "as_set", "as_multiset"),
    [
        ("click", "click", 1, 1),
        ("click", "type boston", 0, 0),
        ("type new york", "type new york city", 6 / 7, 6 / 7),
        ("type 10203", "type 10204", 3 / 4, 3 / 4),
        # "000" occurs twice: 7 common of 8 and 9 different tokens; with repetition, 8 common of 10 and 9.
        ("select $3,000 - $5,000", "select $3,000-$5,000", 12 / 14, 16 / 19),
        ("", "", 1, 1),
        ("", "click", 0, 0),
    ],
)
def test_f1_counts_tokens_as_set_or_multiset(predicted: str, gold: str, as_set: float, as_multiset: float):
    assert operation_f1(predicted, gold, Counting.SET) == pytest.approx(as_set)
    assert operation_f1(predicted, gold, Counting.MULTISET) == pytest.approx(as_multiset)


@given(st.text(max_size=40), st.text(max_size=40))
def test_f1_is_symmetric_and_one_only_for_equal_tokens(one: str, other: str):
    for counting in Counting:
        value = operation_f1(one, other, counting)
        assert 0 <= value <= 1
        assert value == pytest.approx(operation_f1(other, one, counting))
        assert operation_f1(one, one, counting) == 1
    assert (operation_f1(one, other, Counting.MULTISET) == 1) == (sorted(token_ids(one)) == sorted(token_ids(other)))


def test_every_counting_has_two_readings():
    assert {Reading.of(one, keep_click_value=keep) for one in Counting for keep in (False, True)} == set(Reading)
