from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.grounding.folding import fold


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It's \u201cso\u201d", 'IT\u2019S "SO"'),
        ("1990\u20132000", "1990-2000"),
        ("a\u00a0 \n b", "a b"),
        ("soft\u00adhyphen", "softhyphen"),
        ("e\u0301", "\u00e9"),
        ("a\ufe0f\U000e0141b", "ab"),
        ("Stra\u00dfe", "STRASSE"),
        ("\u22125", "-5"),
    ],
)
def test_typographic_variants_are_folded(one: str, other: str):
    assert fold(one).text == fold(other).text


@pytest.mark.parametrize(("one", "other"), [("10\u00b2", "102"), ("\u00bd", "1/2"), ("5", "-5")])
def test_differences_in_meaning_are_not_folded(one: str, other: str):
    assert fold(one).text != fold(other).text


@given(st.text(max_size=300))
def test_every_folded_character_maps_to_the_original(text: str):
    folded = fold(text)
    assert len(folded.starts) == len(folded.text)
    assert list(folded.starts) == sorted(folded.starts)
    assert all(start < len(text) for start in folded.starts)


@given(st.text(max_size=80), st.text(min_size=1, max_size=40), st.text(max_size=80))
def test_folding_a_mapped_span_gives_the_folded_span(before: str, middle: str, after: str):
    text = f"{before} |{middle}| {after}"
    folded = fold(text)
    start = folded.text.find("|")
    end = folded.text.rfind("|") + 1
    left, right = folded.span(start, end)
    assert fold(text[left:right]).text == folded.text[start:end]
