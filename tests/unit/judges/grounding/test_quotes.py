# ruff: noqa: RUF001 - words of other scripts
from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from judges.grounding.folding import fold
from judges.grounding.quotes import (
    MAX_GAP,
    MAX_QUOTE_CHARS,
    find_quote,
    find_quotes,
    is_substantial,
    needs_whole_sentence,
)

PAGE = (
    "Annual report\n\nIda Norrstad was director of the Velm Institute from 1,998 to 2004.\n"
    "The prize was not awarded to her brother in 2001. Costs rose by 12.5 % and fell by \u22123 degrees.\n"
    "She didn\u2019t accept the second offer of the board. No, the board said, nobody left the house.\n"
    "\u60a8\u597d\u4e16\u754c\u8fd9\u662f\u4e00\u4e2a\u6d4b\u8bd5\u9875\u9762"
)
FOLDED = fold(PAGE)


def place(quote: str, *, url: str = "") -> str | None:
    """Return the passage of the page at which the quote was found."""
    found = find_quote(FOLDED, quote, url=url)
    return " | ".join(PAGE[slice(*span)] for span in found) if found else None


@pytest.mark.parametrize(
    ("quote", "passage"),
    [
        ("Ida Norrstad was director of the Velm Institute", "Ida Norrstad was director of the Velm Institute"),
        ('"The prize was not awarded to her brother"', "The prize was not awarded to her brother"),
        ("She didn't accept the second offer", "She didn\u2019t accept the second offer"),
        ("report Ida Norrstad was", "report\n\nIda Norrstad was"),
        ("2004", "2004"),
        ("fell by -3 degrees", "fell by \u22123 degrees"),
        ("\u4e16\u754c\u8fd9\u662f\u4e00\u4e2a", "\u4e16\u754c\u8fd9\u662f\u4e00\u4e2a"),
        ("[...] rose by 12.5 % and fell by (\u2026)", "rose by 12.5 % and fell by"),
    ],
)
def test_verbatim_quote_is_found_at_its_position(quote: str, passage: str):
    assert place(quote) == passage


@pytest.mark.parametrize(
    "quote",
    [
        "Ida Norrstad was director of the Velm Institute from 1,999",
        "998 to 2004. The prize",
        "director of the Velm Institute from 1",
        "5 % and fell by \u22123",
        "The prize was awarded to her brother",
        "awarded to her brother in 2001",
        "da Norrstad was director",
        "Ida Norrstad was direct",
        "Ida Norrstad ... 2004",
        "the the the",
    ],
)
def test_changed_or_cut_quote_is_not_found(quote: str):
    assert place(quote) is None


def test_negation_in_another_clause_does_not_prevent_a_match():
    assert place("the board said, nobody left the house") is not None


STORY = (
    "Mary O\u2019Shea spoke. \u00c9mile Zola couldn\u2019t hear. "
    "The Halden Bridge, which many people like, was opened in the spring of 1931. It has two lanes and a railway. "
    "The jury said that Ida Norrstad is, as nobody should doubt, not the winner of the prize. "
    "It was a rainy day... and people stayed at home. The old ferry was not sold. It sank in the winter storm of 1940."
)


@pytest.mark.parametrize("mark", ["'", "\u2019", "\u2032"])
def test_all_forms_of_an_apostrophe_are_equal(mark: str):
    page = fold(STORY)
    assert [STORY[slice(*span)] for span in find_quote(page, f"Mary O{mark}Shea")] == ["Mary O\u2019Shea"]
    assert find_quote(page, f"couldn{mark}t hear") == ()  # only two words, in any form


def test_name_can_begin_with_any_capital_letter():
    page = fold("\u00c9mile Zola could hear.")
    assert find_quote(page, "\u00c9mile Zola") == find_quote(page, "E\u0301mile Zola") != ()


@pytest.mark.parametrize(
    "ellipsis",
    [
        " ... ",
        "\u2026",
        " [...] ",
        ", ... ",
    ],
)
def test_parts_of_a_quote_with_an_ellipsis_are_separate_quotes(ellipsis: str):
    found = find_quotes(
        fold(STORY), STORY, [f"The Halden Bridge{ellipsis}was opened in the spring of 1931."], page_id="p1"
    )
    assert [quote.text for quote in found] == ["The Halden Bridge", "was opened in the spring of 1931"]
    assert [STORY[quote.start : quote.end] for quote in found] == [quote.text for quote in found]


@pytest.mark.parametrize(
    ("quote", "parts"),
    [
        ("which many people like ... two lanes and a railway ... It was a rainy day", 3),
        ("It was a rainy day... and people stayed", 1),  # the page's own ellipsis
        ("... was opened in the spring of 1931 ... two lanes and a railway ...", 2),
        ("The Halden Bridge ... It sank in the winter storm", 2),  # negations in other sentences do not matter
    ],
)
def test_parts_are_found_in_order(quote: str, parts: int):
    found = find_quote(fold(STORY), quote)
    assert len(found) == parts
    assert list(found) == sorted(found)


@pytest.mark.parametrize(
    "quote",
    [
        "was opened in the spring of 1931 ... The Halden Bridge",  # not in order
        "The Halden Bridge, which many ... which many people like",  # overlapping
        "The Halden Bridge ... was closed in the spring of 1931",  # one part is not on the page
        "The Halden Bridge ... 1931",  # one part is a single number
        "that Ida Norrstad is ... the winner of the prize",  # drops "not"
        "people stayed at home. The old ferry ... sank in the winter storm of 1940",  # drops "was not sold"
        "Halden Bridge, which ... many people like ... was opened in ... spring of 1931 ... two lanes and a railway",
    ],
)
def test_parts_that_could_change_the_meaning_are_not_found(quote: str):
    assert find_quote(fold(STORY), quote) == ()


@pytest.mark.parametrize(
    ("page", "is_found"),
    [
        ("The Halden Bridge is old. It was opened in 1931 by the king.", True),
        ("The Halden Bridge is old.\n\nIt was opened in 1931 by the king.", False),
        ("The Halden Bridge is old.\nIt was opened in 1931 by the king.", False),
        ("# The Halden Bridge\nIt was opened in 1931 by the king.", False),
        ("- The Halden Bridge is old.\n- The port was opened in 1931 by the king.", False),
        ("The Halden Bridge | 1,250 m | was opened in 1931", True),
        ("The Halden Bridge | 1,250 m\nThe port | was opened in 1931", False),
    ],
)
def test_parts_are_in_one_paragraph_list_item_or_table_row(page: str, is_found: bool):
    quote = "The Halden Bridge ... was opened in 1931"
    assert bool(find_quote(fold(page), quote)) is is_found
    assert needs_whole_sentence(fold(page), [quote]) is not is_found


SPACES = [" ", "\u00a0", "\t"]


@pytest.mark.parametrize(
    "number",
    [
        *(f"1{mark}250" for mark in [*SPACES, *"'\u2019\u02bc\u00b4`.,\u00b7\u066c"]),
        *("12 500", "0\u00b75", "1 250 000", "12\u202f500,5", "1\u00a0250.5"),
    ],
)
def test_quote_does_not_begin_or_end_inside_a_number(number: str):
    page = fold(f"In the year the town had {number} people in its houses")
    head, mark, rest = re.split(r"(\D)", number, maxsplit=1)
    for cut in ("", mark):
        assert find_quote(page, f"the town had {head}{cut}") == ()
        assert find_quote(page, f"{cut}{rest} people in its houses") == ()
    assert find_quote(page, f"the town had {number}") != ()
    assert find_quote(page, f"{number} people in its houses") != ()


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        ("It was opened in 2004 250 years after the first one", "It was opened in 2004"),
        ("in 1931, 250 people came to the tower", "250 people came to the tower"),
        ("from 1990-2004 the director was paid", "2004 the director was paid"),
    ],
)
def test_numbers_beside_each_other_are_no_single_number(page: str, quote: str):
    assert find_quote(fold(page), quote) != ()


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        ("an inter-\nnational price-\ndetermining body", "an international price-determining body"),
        ("an inter-\nnational price-\ndetermining body", "an inter-national price- determining body"),
        ("an inter\u2010\r\n  national body of towns", "an international body of towns"),
        ("an inter\u00ad\nnational body of towns", "an international body of towns"),
        ("geen vracht-\nen verzendkosten hier", "geen vracht- en verzendkosten hier"),
        ("این کتاب می\u200cشود ۱۹۳۱", "اين كتاب ميشود 1931"),
        ("كَتَبَ الـــدرس ١٩٣١", "كتب الدرس 1931"),
        ("the year ۱۹۳۱ or १९३१ or ๑๙๓๑ or １９３１", "the year 1931 or 1931 or 1931 or 1931"),
        ("博物馆于1931\n年开\n放了", "博物馆于1931年开放了"),
    ],
)
def test_same_words_in_another_writing_are_found(page: str, quote: str):
    assert [page[slice(*span)] for span in find_quote(fold(page), quote)] == [page]


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        ("geen vracht- en verzendkosten hier", "geen vrachten verzendkosten hier"),
        ("an inter-\n\nnational body of towns", "an international body of towns"),
        ("from 1990-\n2004 the director was", "from 19902004 the director was"),
        ("мой дом 1931", "мои дом 1931"),
    ],
)
def test_other_words_are_not_found(page: str, quote: str):
    assert find_quote(fold(page), quote) == ()


def test_later_occurrence_of_a_part_is_used_if_the_first_does_not_match():
    far = "word " * MAX_GAP
    page = f"The Halden Bridge is red. {far} The Halden Bridge is old. It was opened in 1931. {far}"
    found = find_quote(fold(page), "The Halden Bridge ... was opened in 1931")
    assert [page[slice(*span)] for span in found] == ["The Halden Bridge", "was opened in 1931"]
    assert found[0][0] == page.rindex("The Halden Bridge")


def test_page_of_repetitions_is_searched_fast():
    page = fold("the same words not again and again " * 10_000)
    before = time.process_time()
    assert (
        find_quote(page, " ... ".join(["the same words", "and again the same", "words not again", "nor this at all"]))
        == ()
    )
    assert find_quote(page, "the same words ... the same words ... the same words") == ()
    assert time.process_time() - before < 1.0


@pytest.mark.parametrize("weak", ["of the", "7", "a b c"])
def test_insubstantial_quote_is_not_found(weak: str):
    assert not is_substantial(weak)
    assert place(weak) is None


def test_words_of_the_url_are_not_found():
    echo = "https://search.example/?q=Ida+Norrstad+was+director"
    assert place("Ida Norrstad was director", url=echo) is None
    assert place("Ida Norrstad was director of the Velm", url=echo) is not None


def test_very_long_quote_is_not_searched():
    text = "word " * MAX_QUOTE_CHARS
    assert find_quote(fold(text), text) == ()


def test_only_the_first_three_quotes_count_without_duplicates():
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
def test_any_run_of_whole_words_is_found_unless_it_drops_a_negation(words: list[str], data: st.DataObject):
    start = data.draw(st.integers(0, len(words) - 4))
    quote = " ".join(words[start : start + 4])
    page = "  \n".join(words)
    assume("not" not in words[:start] + words[start + 4 :])
    [span] = find_quote(fold(page), quote)
    assert fold(page[slice(*span)]).text == fold(quote).text


@given(st.lists(st.integers(0, 30), min_size=2, max_size=4), st.data())
def test_parts_are_found_only_in_page_order(gaps: list[int], data: st.DataObject):
    """The words of each part occur only once in the page."""
    parts = [f"first{nth} second{nth} third{nth}" for nth in range(len(gaps))]
    page = "  ".join(f"{'filler ' * gap}{part}" for gap, part in zip(gaps, parts, strict=True))
    order = data.draw(st.permutations(parts))
    found = find_quote(fold(page), " ... ".join(order))
    assert [page[slice(*span)] for span in found] == (parts if order == parts else [])


@given(WORDS, st.integers(0, 9))
def test_changed_digit_is_never_found(words: list[str], digit: int):
    page = " ".join(words)
    assume(f"19{digit}4" not in page)
    assert find_quote(fold(page), f"alpha beta 19{digit}4") == ()
