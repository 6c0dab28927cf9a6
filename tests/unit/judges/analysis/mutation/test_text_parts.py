from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.mutation.mutations import (
    cited_keys,
    count_value,
    names,
    numbers,
    replace_value,
    sections,
    with_citation_of,
    without_citation,
    without_urls,
)

URL, OTHER = "https://a.example/x", "https://b.example/y"


def test_section_is_the_text_from_one_heading_to_the_next() -> None:
    text = "Before.\n# Title\n\n## Empty\n\n## Ferry\n- 8:40\n\n### Back\nat 9\n"
    assert [(one.title, text[one.start : one.end].strip()) for one in sections(text)] == [
        ("Ferry", "- 8:40"),
        ("Back", "at 9"),
    ]


def test_paragraphs_are_sections_if_there_are_no_headings() -> None:
    text = "One\nline.\n\n\nTwo.\n"
    assert [text[one.start : one.end].strip() for one in sections(text)] == ["One\nline.", "Two."]
    assert sections("") == ()


def test_numbers_include_separators_and_decimals() -> None:
    assert numbers("At 8:40, 1,350 crowns, v2 and 3.5 kg, 480. Not x7, 8:40") == ("8:40", "1,350", "3.5", "480")


def test_names_are_runs_of_capitalized_words_without_days_and_months() -> None:
    assert names("Ida Norrstad said on Monday 3 March that The Bay is Élan Vital") == ("Ida Norrstad", "Élan Vital")


@pytest.mark.parametrize(
    ("text", "found"),
    [("12 and 12.", 2), ("12,5 112 1.12 12:30 x12", 0), ("Norrstad's", 0), ("(12)", 1)],
)
def test_value_is_counted_only_as_a_separate_word(text: str, found: int) -> None:
    assert count_value("12", text) == found


def test_value_is_replaced_everywhere_except_in_urls() -> None:
    text = "It costs 12 crowns, see [12](https://a.example/12) and https://a.example/12/."
    assert (
        replace_value(text, "12", "25")
        == "It costs 25 crowns, see [25](https://a.example/12) and https://a.example/12/."
    )
    assert "a.example" not in without_urls(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"See [the page]({URL}) now.", "See the page now."),
        (f"See [the page]({URL} 'title') now.", "See the page now."),
        (f"See ![a picture]({URL}) now.", "See  now."),
        (f"See <{URL}> now.", "See  now."),
        (f"See {URL} now.", "See  now."),
        (f"See [it][1] now.\n\n[1]: {URL}\n", "See it now.\n\n"),
        (f"Both [here]({URL}) and [there]({URL}/?utm_source=z).", "Both here and there."),
        (f"[a]({URL}), [b]({OTHER})", f"a, [b]({OTHER})"),
    ],
)
def test_citation_is_removed_and_its_link_text_stays(text: str, left: str) -> None:
    assert without_citation(text, URL) == left


def test_citation_of_a_url_is_replaced_in_every_form() -> None:
    text = f"[a]({URL}), <{URL}#part> and [c][1]\n\n[1]: {URL}"
    changed = with_citation_of(text, URL, OTHER)
    assert changed == f"[a]({OTHER}), <{OTHER}> and [c][1]\n\n[1]: {OTHER}"


PARTS = st.sampled_from(
    [f"[a]({URL})", f"[b]({OTHER})", f"<{URL}>", URL, f"{OTHER}", "word", "\n\n", "[c][1]", f"\n[1]: {URL}\n", "(", "]"]
)


@given(parts=st.lists(PARTS, max_size=8))
def test_removing_a_citation_removes_only_that_citation(parts: list[str]) -> None:
    text = " ".join(parts)
    before = cited_keys(text)
    changed = without_citation(text, URL)
    if changed is not None:
        assert cited_keys(changed) == before - cited_keys(URL)
