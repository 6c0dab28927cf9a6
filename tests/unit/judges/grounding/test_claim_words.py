from __future__ import annotations

import pytest

from judges.grounding.claim_words import MAX_MARKED, covers_all, locate_words

CLAIM = "Ida Norrstad founded the Velm Institute in 1931 and ran it until 1,931 people knew it."


def found(*marked: str, claim: str = CLAIM) -> list[str] | None:
    spans = locate_words(claim, marked)
    return None if spans is None else [claim[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        (["in 1931"], ["in 1931"]),
        (["1,931 people", "Ida"], ["Ida", "1,931 people"]),
        (["  the Velm Institute "], ["the Velm Institute"]),
        (["THE VELM   INSTITUTE"], ["the Velm Institute"]),
        (["Ida", "Norrstad"], ["Ida Norrstad"]),
        (["founded the Velm", "Velm Institute"], ["founded the Velm Institute"]),
        ([], []),
    ],
)
def test_marked_words_are_located_in_text_order(marked: list[str], words: list[str]) -> None:
    assert found(*marked) == words


@pytest.mark.parametrize("marked", ["", "  ", "...", "in 1932", "931", "Norr", "founded by", "1931 and ran them"])
def test_words_that_are_not_whole_words_of_the_claim_are_refused(marked: str) -> None:
    assert found("Ida", marked) is None


def test_repeated_passage_marks_the_next_occurrence() -> None:
    assert locate_words("red and red and red", ["red", "red"]) == ((0, 3), (8, 11))
    assert locate_words("red", ["red", "red"]) == ((0, 3),)


def test_typographic_variants_are_found_at_their_place_in_the_claim() -> None:
    claim = "The \u201cnorth\u201d wing \u2013 built late"
    assert found('"north" wing - built', claim=claim) == ["\u201cnorth\u201d wing \u2013 built"]


def test_number_of_passages_is_limited() -> None:
    assert locate_words("a b", ["a"] * (MAX_MARKED + 1)) is None


@pytest.mark.parametrize(("marked", "covers"), [(["Ida", "left"], True), (["Ida"], False), (["Ida, left"], True)])
def test_claim_is_covered_if_all_letters_and_digits_are(marked: list[str], covers: bool) -> None:
    claim = "Ida, left."
    assert covers_all(claim, locate_words(claim, marked) or ()) is covers
