"""Markdown of an answer as safe HTML with marked citations."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from app.dashboard.answer_html import page_mark, render_answer

URL = "https://a.example/page"
MARK = page_mark(URL)


def marked(text: str) -> list[str]:
    """Return the texts of the marked sentences."""
    return [node.text() for node in HTMLParser(render_answer(text).html).css("[data-cites]")]


def test_sentence_that_cites_a_page_is_marked():
    text = f"It is old. It was built in 1764 ([source]({URL})). Nobody knows more."
    assert marked(text) == ["It was built in 1764 (source). "]
    assert render_answer(text).marks == {MARK}


def test_bare_url_is_a_link_and_marks_its_sentence():
    shown = render_answer(f"Built in 1764, see {URL}.\n\nNot this.")
    assert f'href="{URL}"' in shown.html
    assert marked(f"Built in 1764, see {URL}.\n\nNot this.") == [f"Built in 1764, see {URL}."]


def test_list_with_a_source_item_is_marked_as_a_whole():
    assert marked(f"* Opens: 10:00\n* Closes at 18:00\n* Source: {URL}\n\nAnd\n\n* Another list") == [
        "Opens: 10:00",
        "Closes at 18:00",
        f"Source: {URL}",
    ]


def test_sentence_does_not_end_inside_emphasis():
    shown = HTMLParser(render_answer(f"**One. Two [x]({URL}). Three** and four.").html)
    assert [node.text() for node in shown.css("[data-cites]")] == ["One. Two x. Three and four."]


def test_spellings_of_one_url_have_the_same_mark():
    assert page_mark("http://www.a.example/page/") == page_mark("https://a.example/page")


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "/v1/x"]
)
def test_only_web_urls_are_links(target: str):
    links = HTMLParser(render_answer(f"[x]({target}) <{target}>").html).css("a")
    assert [link.attributes.get("href") for link in links if link.attributes.get("href")] == []


PARTS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", f"[x]({URL})", "](javascript:alert(1))", "**", "`",
    "# ", "- ", "\n", "| a | b |\n|---|---|\n", "![", "<svg onload=alert(1)>", "&lt;b&gt;", "text. ", URL, "<!--", "\\",
]  # fmt: skip
SHOWN = {
    "a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td",
    "th", "thead", "tr", "ul", "h1", "h2", "h3", "h4", "h5", "h6",
}  # fmt: skip


@given(st.lists(st.sampled_from(PARTS), max_size=25).map("".join))
def test_any_text_is_rendered_as_safe_elements(text: str):
    shown = HTMLParser(render_answer(text).html)
    allowed = SHOWN | {"html", "head", "body", "-text"}
    for node in shown.css("*"):
        assert node.tag in allowed
        assert not [name for name in node.attributes if name.startswith("on") or name in {"style", "src"}]
        assert re.match(r"https?://|$", node.attributes.get("href") or "")
