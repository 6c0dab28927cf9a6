from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judges.analysis.mutation.answer_text import cited_keys, sections, without_citation

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
