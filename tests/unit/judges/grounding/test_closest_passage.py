"""Passage of a page that is closest to a claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.grounding.term_overlap import (
    MAX_CHARS,
    MAX_PASSAGE_CHARS,
    MAX_SENTENCES,
    ClosestPassage,
    closest_passage,
)

MUSEUM = """Tide museum of Karrow Bay
Opening hours
Monday to Friday: 9:00 to 16:00
Saturday: open from 10:00 to 17:00
Sunday: closed. The café on the pier opens on Saturday, too.
Tickets
Adults pay 12 crowns, children 5. Wheelchairs can be borrowed at the north entrance.
"""


def passage_of(claim: str, text: str) -> str | None:
    found = closest_passage(claim, text)
    return None if found is None else text[found.start : found.end]


@pytest.mark.parametrize(
    ("claim", "contained"),
    [
        ("On Saturday the tide museum is open to 18:00", "Saturday: open from 10:00 to 17:00"),
        ("A ticket for an adult costs 9 crowns", "Adults pay 12 crowns, children 5."),
        ("Wheelchairs can be borrowed at the information desk", "Wheelchairs can be borrowed at the north entrance."),
        ("The cafe on the pier is closed on Saturdays", "The café on the pier opens on Saturday, too."),
    ],
)
def test_passage_with_the_words_of_the_claim_and_another_value_is_found(claim: str, contained: str):
    passage = passage_of(claim, MUSEUM)
    assert passage is not None and contained in passage
    assert len(passage) < len(contained) + 40


def test_rare_words_count_more_than_frequent_ones():
    text = "The bridge is long. " * 50 + "Halden stands by the bridge. " + "The bridge is old. " * 50
    assert passage_of("The bridge of Halden is long", text) == "Halden stands by the bridge."


def test_page_without_a_word_of_the_claim_has_no_passage():
    assert closest_passage("Ida Norrstad has led it since 1998", MUSEUM) is None
    assert closest_passage("", MUSEUM) is None and closest_passage("Ida", "") is None


def test_scores_order_pages_by_closeness():
    claim = "On Saturday the museum is open to 18:00"
    near, far = closest_passage(claim, MUSEUM), closest_passage(claim, "\n".join(["The museum."] + ["Other."] * 6))
    assert near is not None and far is not None and near.score > far.score


def test_text_without_spaces_between_words_is_compared_by_parts():
    assert passage_of("東京タワーは1958年に完成した", "大阪の城。東京タワーの完成は1957年です。京都の寺。") == (
        "東京タワーの完成は1957年です。"
    )


def test_text_after_the_limit_is_not_searched():
    assert closest_passage("Halden", "x" * MAX_CHARS + " Halden") is None


@given(st.text(max_size=40), st.text(max_size=1500))
def test_passage_is_a_bounded_part_of_the_text(claim: str, text: str):
    found = closest_passage(claim, text)
    assert found is None or isinstance(found, ClosestPassage)
    if found is not None:
        assert 0 <= found.start < found.end <= len(text)
        assert found.end - found.start <= MAX_SENTENCES * MAX_PASSAGE_CHARS
        assert text[found.start : found.end].strip()
