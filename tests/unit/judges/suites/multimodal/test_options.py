from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.suites.questions import NONE_OF_THESE, option_index, option_lines, option_name


@pytest.mark.parametrize(
    ("index", "name"),
    [(0, "A"), (20, "U"), (21, "V"), (25, "Z"), (26, "AA"), (27, "AB"), (52, "BA"), (701, "ZZ"), (702, "AAA")],
)
def test_option_names_continue_with_more_letters(index: int, name: str):
    assert option_name(index) == name
    assert option_index(name) == index


@given(st.integers(0, 701))
def test_option_name_and_index_are_inverse(index: int):
    assert option_index(option_name(index)) == index


@pytest.mark.parametrize("name", ["", "a", "ABCDE", "Invalid", "1", "Ä"])
def test_invalid_option_name_has_no_index(name: str):
    assert option_index(name) is None


def test_negative_index_is_rejected():
    with pytest.raises(ValueError, match="out of range"):
        option_name(-1)


def test_none_option_is_the_last_one():
    lines = option_lines(["<a id=0>", "<b id=1>"])
    assert lines == ["A. <a id=0>", "B. <b id=1>", f"C. {NONE_OF_THESE}"]
    assert option_lines(["x"] * 27)[-1].startswith("AB. ")
