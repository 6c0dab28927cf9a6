"""Pruning of a page around candidates. Each page is small enough to verify by hand."""

from __future__ import annotations

import pytest
from lxml import etree

from judges.suites.errors import PageUnusable
from judges.suites.mind2web.page import Page, show_page


def pruned(html: str, *ids: str) -> str:
    return etree.tostring(Page.parse(html).pruned(ids), encoding="unicode")


def nested(levels: int, inner: str = "") -> str:
    """Return nested elements ``a1`` > ``a2`` > ..., each with its id as title, so that none of them is empty."""
    text = inner
    for level in range(levels, 0, -1):
        text = f'<a{level} backend_node_id="{level}" title="t{level}">{text}</a{level}>'
    return text


def test_descendants_are_retained_six_levels_deep():
    kept = pruned(nested(9), "1")
    assert "<a7" in kept
    assert "<a8" not in kept


def test_three_siblings_on_each_side_are_retained_not_counting_texts():
    row = "".join(f'<i backend_node_id="{n}" title="{n}"/><text backend_node_id="{n}0">t</text>' for n in range(1, 10))
    kept = pruned(f'<r backend_node_id="0">{row}</r>', "5")
    assert [n for n in range(1, 10) if f'title="{n}"' in kept] == [2, 3, 4, 5, 6, 7, 8]


def test_empty_element_is_replaced_by_its_only_child_or_removed():
    html = (
        '<r backend_node_id="0"><d backend_node_id="1"><e backend_node_id="2"><c backend_node_id="3"/></e></d>'
        '<empty backend_node_id="4"/></r>'
    )
    assert pruned(html, "3") == '<r><c backend_node_id="3"/></r>'


def test_only_candidates_have_ids_and_the_root_is_never_removed():
    html = '<r backend_node_id="0"><m backend_node_id="1"><c backend_node_id="2"/></m></r>'
    assert pruned(html, "2") == '<r><c backend_node_id="2"/></r>'
    assert pruned(html, "0") == '<r backend_node_id="0"/>'


def test_page_without_white_space_between_tags_has_shorter_options():
    html = (
        '<r backend_node_id="0">\n <a backend_node_id="1"><text backend_node_id="2">one two</text></a>'
        '\n <b backend_node_id="3"><text backend_node_id="4">three</text></b></r>'
    )
    spaced = show_page(Page.parse(html), ("0", "1"))
    minified = show_page(Page.parse(html.replace("\n ", "")), ("0", "1"))
    assert spaced.options[0][1] == "<r id=0> <a id=1>one two</a> <b>three</b></r>"
    assert minified.options[0][1] == "<r id=0><a id=1>one two</a><b>three</b></r>"


@pytest.mark.parametrize("html", ["<a>", "<a>&unknown;</a>"])
def test_page_that_is_not_well_formed_is_rejected(html: str):
    with pytest.raises(PageUnusable, match="not well-formed"):
        Page.parse(html)


def test_error_for_a_candidate_missing_in_the_page_names_it():
    with pytest.raises(PageUnusable, match="candidate '7' is not in cleaned_html"):
        show_page(Page.parse('<a backend_node_id="1"/>'), ("7",))


def test_entities_are_not_expanded():
    bomb = (
        '<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;&x;&x;&x;&x;&x;">]>'
        '<a backend_node_id="1"><text backend_node_id="2">&y;&y;&y;</text></a>'
    )
    assert "xxx" not in show_page(Page.parse(bomb), ("1",)).context


def test_text_element_is_no_candidate():
    with pytest.raises(PageUnusable, match="candidate '2' is a <text> element"):
        pruned('<a backend_node_id="1"><text backend_node_id="2">x</text></a>', "2")


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
        ('title="Search" aria_label="search"', "search"),  # duplicate words are omitted
        ('alt="http://cdn.example/x.png" title="x"', "x"),
        ('role="none" type="hidden" label="presentation" name="null" value="Undefined" title="ok"', "ok"),
        ('title="aaaaaaaaaaaaaaa bbbbbbbbbbbbbb"', "bbbbbbbbbbbbbb"),
    ],
)
def test_attributes_are_shown_as_words(attributes: str, shown: str):
    assert context(element(attributes, "t"), "1") == f"<r> <a id=0{' ' if shown else ''}{shown}>t</a></r>".replace(
        "<r> <a", "<r><a"
    )


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
        ('say "now" (fast)', "say now (fast)"),
        # Escaped twice: the format replaces quotes before ampersands.
        ("&amp;quot;x&amp;nbsp;y&amp;lt;z&amp;#39;", "&quot;x y<z'"),
        ("meta= gone", "gone"),
    ],
)
def test_escapes_and_quotes_are_converted(text: str, shown: str):
    assert context(element("", text), "1") == f"<r><a id=0>{shown}</a></r>"
