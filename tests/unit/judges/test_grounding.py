from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judges.folding import fold
from judges.grounding import MAX_QUOTE_CHARS, find_quote, find_quotes, is_telling

PAGE = (
    "Annual report\n\nIda Norrstad was director of the Velm Institute from 1,998 to 2004.\n"
    "The prize was not awarded to her brother in 2001. Costs rose by 12.5 % and fell by \u22123 degrees.\n"
    "She didn\u2019t accept the second offer of the board. No, the board said, nobody left the house.\n"
    "\u60a8\u597d\u4e16\u754c\u8fd9\u662f\u4e00\u4e2a\u6d4b\u8bd5\u9875\u9762"
)
FOLDED = fold(PAGE)


def place(quote: str, *, url: str = "") -> str | None:
    """What of the page the quote was found at."""
    found = find_quote(FOLDED, quote, url=url)
    return None if found is None else PAGE[slice(*found)]


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("Ida Norrstad was director of the Velm Institute", "Ida Norrstad was director of the Velm Institute"),
        ("ida  norrstad WAS director", "Ida Norrstad was director"),
        ('"The prize was not awarded to her brother"', "The prize was not awarded to her brother"),
        ("She didn't accept the second offer", "She didn\u2019t accept the second offer"),
        ("report Ida Norrstad was", "report\n\nIda Norrstad was"),
        ("Ida Norrstad", "Ida Norrstad"),
        ("2004", "2004"),
        ("fell by -3 degrees", "fell by \u22123 degrees"),
        ("\u4e16\u754c\u8fd9\u662f\u4e00\u4e2a", "\u4e16\u754c\u8fd9\u662f\u4e00\u4e2a"),
        ("...rose by 12.5 % and fell by...", "rose by 12.5 % and fell by"),
    ],
)
def test_a_verbatim_quote_is_found_with_its_place(quote: str, stands: str):
    assert place(quote) == stands


@pytest.mark.parametrize(
    "quote",
    [
        "Ida Norrstad was director of the Velm Institute from 1,999",
        "998 to 2004. The prize",
        "director of the Velm Institute from 1",
        "5 % and fell by \u22123",
        "3 degrees. She didn't accept",
        "The prize was awarded to her brother",
        "awarded to her brother in 2001",
        "accept the second offer of the board",
        "da Norrstad was director",
        "Ida Norrstad was direct",
        "Ida Norrstad ... 2004",
        "the the the",
        "",
        "  ... ",
    ],
)
def test_a_changed_or_cut_quote_is_not_found(quote: str):
    assert place(quote) is None


def test_a_no_in_another_clause_does_not_hinder():
    assert place("the board said, nobody left the house") is not None


@pytest.mark.parametrize("weak", ["of the", "was", "7", "report", "a b c"])
def test_a_quote_that_says_nothing_is_no_ground(weak: str):
    assert not is_telling(weak)
    assert place(weak) is None


def test_words_of_the_address_itself_are_no_ground():
    echo = "https://search.example/?q=Ida+Norrstad+was+director"
    assert place("Ida Norrstad was director", url=echo) is None
    assert place("Ida Norrstad was director of the Velm", url=echo) is not None


def test_an_endless_quote_is_not_searched_for():
    text = "word " * MAX_QUOTE_CHARS
    assert find_quote(fold(text), text) is None


def test_only_the_first_three_quotes_count_and_each_once():
    quotes = [
        "Ida Norrstad was director",
        "nowhere on this page",
        "Ida Norrstad was director",
        "The prize was not awarded",
    ]
    found = find_quotes(FOLDED, PAGE, quotes, page_id="p1")
    assert [(quote.text, quote.page_id) for quote in found] == [("Ida Norrstad was director", "p1")]


WORDS = st.lists(
    st.sampled_from(["Alpha", "beta", "gamma", "1984", "delta", "3.5", "caf\u00e9", "not"]), min_size=8, max_size=40
)


@given(WORDS, st.data())
def test_any_run_of_whole_words_is_found_unless_it_loses_a_negation(words: list[str], data: st.DataObject):
    start = data.draw(st.integers(0, len(words) - 4))
    quote = " ".join(words[start : start + 4])
    page = "  \n".join(words)
    assume("not" not in words[max(0, start - 4) : start])
    found = find_quote(fold(page), quote)
    assert found is not None
    assert fold(page[slice(*found)]).text == fold(quote).text


@given(WORDS, st.integers(0, 9))
def test_one_changed_digit_is_never_found(words: list[str], digit: int):
    page = " ".join(words)
    assume(f"19{digit}4" not in page)
    assert find_quote(fold(page), f"alpha beta 19{digit}4") is None
