from __future__ import annotations

import pytest

from judges.suites.mind2web.page import Page, show_page


def context(inner: str, *ids: str, html_brackets: bool = True) -> str:
    page = Page.parse(f'<r backend_node_id="0">{inner}</r>')
    return show_page(page, ids or ("0",), html_brackets=html_brackets).context


def element(attributes: str, text: str = "") -> str:
    inside = f'<text backend_node_id="2">{text}</text>' if text else ""
    return f'<a backend_node_id="1" {attributes}>{inside}</a>'


@pytest.mark.parametrize(
    ("attributes", "shown"),
    [
        ('role="Button" type="SUBMIT"', "button submit"),
        ('class="icon" title="Close" role="button"', "button close icon"),  # in the order of the format
        ('title="Search" aria_label="search"', "search"),  # duplicate words are omitted
        ('alt="http://cdn.example/x.png" title="x"', "x"),
        ('role="none" type="hidden" label="presentation" name="null" value="Undefined" title="ok"', "ok"),
        ('title="one two three four five six"', "one two three four five"),
        ('title="aaaaaaaaaaaaaaa bbbbbbbbbbbbbb"', "bbbbbbbbbbbbbb"),  # words of 15 characters or more are omitted
        ('data="never" href="shown"', ""),
    ],
)
def test_attributes_are_shown_as_words(attributes: str, shown: str):
    assert context(element(attributes, "t"), "1") == f"<r> <a id=0{' ' if shown else ''}{shown}>t</a></r>".replace(
        "<r> <a", "<r><a"
    )


def test_all_attributes_together_have_at_most_twenty_words():
    many = " ".join(
        f'{name}="{name}1 {name}2 {name}3 {name}4 {name}5"' for name in ("role", "type", "alt", "label", "title")
    )
    assert context(element(many), "1").count("title") == 0
    assert context(element(many), "1").count("label") == 5


def test_texts_have_at_most_twenty_words():
    assert context(element("", " ".join(map(str, range(30)))), "1").endswith("18 19</a></r>")


def test_candidates_are_numbered_in_document_order():
    inner = "".join(f'<b backend_node_id="{n}" title="t{n}"/>' for n in (5, 3, 9))
    shown = show_page(Page.parse(f'<r backend_node_id="0">{inner}</r>'), ("9", "5"))
    assert shown.context == "<r><b id=0 t5 /><b t3 /><b id=1 t9 /></r>"
    assert shown.options == (("5", "<b id=0 t5 />"), ("9", "<b id=1 t9 />"))
    assert shown.numbers == {"5": 0, "9": 1}


def test_option_is_the_first_ten_words():
    page = Page.parse(f'<r backend_node_id="0">{element("", " ".join("abcdefghijklm"))}</r>')
    assert show_page(page, ("1",)).options == (("1", "<a id=0>a b c d e f g h i"),)


def test_round_brackets_open_and_close_elements():
    inner = '<b backend_node_id="3" title="t"/> <c backend_node_id="4"><text backend_node_id="5">x</text></c>'
    assert context(inner, "3", html_brackets=False) == "(r(b id=0 t ) (cx))"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a &amp; b", "a & b"),
        ("a &lt; b &gt; c", "a < b > c"),
        ('say "now" (fast)', "say now (fast)"),
        # Escaped twice: the format replaces quotes before ampersands.
        ("&amp;quot;x&amp;nbsp;y&amp;lt;z&amp;#39;", "&quot;x y<z'"),
        ("caf\u00e9 \u2019", "caf\u00e9 \u2019"),
        ("meta= gone", "gone"),
        ("id= 5", "id=5"),
    ],
)
def test_escapes_and_quotes_are_converted(text: str, shown: str):
    assert context(element("", text), "1") == f"<r><a id=0>{shown}</a></r>"


def test_empty_text_is_omitted():
    html = '<a backend_node_id="1" title="t"><text backend_node_id="2"/></a>'
    assert context(html, "1") == "<r><a id=0 t></a></r>"
