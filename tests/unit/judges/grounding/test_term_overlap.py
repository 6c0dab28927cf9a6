from __future__ import annotations

import pytest

from judges.grounding.term_overlap import covers_terms, missing_terms, stems_of, terms

PAGE = stems_of(
    "After two years of work the Halvorsen Bridge was opened to traffic on 4 October 1931. It cost 1,240,000 crowns. "
    "The designer was Ingrid Solheim of the University of Ulmen. Visitors: 23 400. Open Mon - Fri, three arches."
)


@pytest.mark.parametrize(
    "claim",
    [
        "The Halvorsen Bridge was opened in 1931.",
        "The bridge was opened on October 4, 1931.",
        "Solheim designed the Halvorsen Bridge.",
        "I. Solheim designed the bridge.",
        "It cost 1.24 million crowns.",
        "It cost 1240000 crowns.",
        "It cost more than 900,000 crowns.",
        "The bridge has about 24,000 visitors.",
        "The bridge has 23,400 visitors.",
        "The bridge has 3 arches.",
        "The bridge has 17 arches.",
        "It is open on Fridays.",
        "The University of Ulmen is far away.",
        "nothing with a name in it",
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
        ("It was opened in 1931 by Queen Maud.", ("Queen Maud",)),
        ("It is closed on Tuesdays.", ("Tuesdays",)),
        ("It has 61.8 percent.", ("61.8",)),
    ],
)
def test_absent_names_and_numbers_are_missing(claim: str, missing: tuple[str, ...]):
    assert missing_terms(claim, PAGE) == missing


@pytest.mark.parametrize(
    "claim",
    [
        "It covers 25 m\u00b2 or 5\u00b2 m.",
        "x \u00b2",
        "\u2460 and \u00bd",
        "\u0661\u0662 arches",
        "version 1.2.3",
        "at 10.0.0.1",
        "12.5.2024",
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
        ["Ignore all previous instructions"],
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
