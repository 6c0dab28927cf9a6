from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.grounding.term_overlap import (
    MAX_CHARS,
    MAX_PASSAGE_CHARS,
    MAX_SENTENCES,
    ClosestPassage,
    absent_words,
    closest_passage,
    covers_terms,
    missing_terms,
    stems_of,
    terms,
)

PAGE = stems_of(
    "After two years of work the Halvorsen Bridge was opened to traffic on 4 October 1931. It cost 1,240,000 crowns. "
    "The designer was Ingrid Solheim of the University of Ulmen. Visitors: 23 400. Open Mon - Fri, three arches."
)


@pytest.mark.parametrize(
    "claim",
    [
        "The Halvorsen Bridge was opened in 1931.",
        "The bridge was opened on October 4, 1931.",
        "I. Solheim designed the bridge.",
        "It cost 1.24 million crowns.",
        "It cost more than 900,000 crowns.",
        "The bridge has about 24,000 visitors.",
        "The bridge has 3 arches.",
        "The bridge has 17 arches.",
        "It is open on Fridays.",
    ],
)
def test_names_and_numbers_of_the_page_are_not_missing(claim: str):
    assert missing_terms(claim, PAGE) == ()


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("The Halvorsen Bridge was opened in 1934.", ("1934",)),
        ("Jonas Brandt designed the Halvorsen Bridge.", ("Jonas Brandt",)),
        ("It cost 1,250,000 crowns.", ("1,250,000",)),
        ("It is closed on Tuesdays.", ("Tuesdays",)),
    ],
)
def test_absent_names_and_numbers_are_missing(claim: str, missing: tuple[str, ...]):
    assert missing_terms(claim, PAGE) == missing


@pytest.mark.parametrize(
    "claim",
    [
        "It covers 25 m\u00b2 or 5\u00b2 m.",
        "\u2460 and \u00bd",
        "version 1.2.3",
    ],
)
def test_unusual_numerals_are_accepted(claim: str):
    assert isinstance(missing_terms(claim, PAGE), tuple)


@pytest.mark.parametrize(
    "quotes",
    [
        ["The Halvorsen Bridge was opened in 1931."],
        ["opened to traffic in 1931", "The Halvorsen Bridge carries the valley road"],
        ["In May 1931 Halvorsen Bridge opens"],
    ],
)
def test_quotes_that_contain_the_claims_terms_cover_it(quotes: list[str]):
    assert covers_terms("The Halvorsen Bridge was opened to traffic in 1931.", quotes)


@pytest.mark.parametrize(
    "quotes",
    [
        [],
        ["The Halvorsen Bridge was opened in 1934."],
        ["The Tane Bridge was opened in 1931."],
        ["The Halvorsen Bridge was painted in 1931."],
    ],
)
def test_quotes_without_the_claims_terms_do_not_cover_it(quotes: list[str]):
    assert not covers_terms("The Halvorsen Bridge was opened to traffic in 1931.", quotes)


def test_claim_without_terms_is_not_covered():
    assert not covers_terms("It is so.", ["It is so."])


def test_terms_are_split_into_numbers_names_and_words():
    found = terms("Maria Keller paid 1,250.00 \u20ac for three books in Ulm.")
    assert found.numbers == {"1250", "3"}
    assert found.names == {"maria", "keller", "ulm"}
    assert found.words == {"paid", "euro", "books"}


def test_script_without_spaces_has_words():
    assert covers_terms(
        "\u535a\u7269\u9986\u5468\u4e8c\u5173\u95ed", ["\u8be5\u535a\u7269\u9986\u5468\u4e8c\u5173\u95ed"]
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


@pytest.mark.parametrize(
    ("claim", "passage", "missing"),
    [
        ("The 3 turbines supply 12,000 homes", "Three turbines supply 9,000 homes", ("12,000",)),
        ("Turbines were approved in 1998.", "The approval of a turbine, 1998", ()),
        ("It cost $5 million", "It cost 5 euro", ("$", "million")),
        ("The opening is on Saturday", "Opened Saturdays", ()),
        ("", "x", ()),
        ("Cafés close late", "", ("Cafés", "close", "late")),
        ("東京タワーは1957年に", "京都の寺は1957年に", ("東京タワーは",)),
    ],
)
def test_absent_words_are_those_of_the_claim_as_written(claim: str, passage: str, missing: tuple[str, ...]):
    assert absent_words(claim, passage) == missing


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
