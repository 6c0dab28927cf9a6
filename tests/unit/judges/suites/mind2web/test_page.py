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


def test_first_fifty_descendants_including_texts_are_retained():
    inner = "".join(
        f'<b backend_node_id="{n}" name="n{n}"><text backend_node_id="{n}00">t</text></b>' for n in range(1, 40)
    )
    kept = pruned(f'<r backend_node_id="0"><c backend_node_id="99">{inner}</c></r>', "99")
    assert 'name="n25"' in kept
    assert 'name="n26"' not in kept


def test_three_siblings_on_each_side_are_retained_not_counting_texts():
    row = "".join(f'<i backend_node_id="{n}" title="{n}"/><text backend_node_id="{n}0">t</text>' for n in range(1, 10))
    kept = pruned(f'<r backend_node_id="0">{row}</r>', "5")
    assert [n for n in range(1, 10) if f'title="{n}"' in kept] == [2, 3, 4, 5, 6, 7, 8]


def test_text_is_retained_if_its_element_is():
    html = (
        '<r backend_node_id="0"><x backend_node_id="1"><text backend_node_id="2">near</text>'
        '<z backend_node_id="4" title="z"/></x>'
        '<q backend_node_id="5"><w backend_node_id="6"><text backend_node_id="7">far</text></w></q></r>'
    )
    assert pruned(html, "4") == '<r><x><text>near</text><z backend_node_id="4" title="z"/></x></r>'


def test_only_candidates_have_ids_and_the_root_is_never_removed():
    html = '<r backend_node_id="0"><m backend_node_id="1"><c backend_node_id="2"/></m></r>'
    assert pruned(html, "2") == '<r><c backend_node_id="2"/></r>'
    assert pruned(html, "0") == '<r backend_node_id="0"/>'


def test_empty_element_is_replaced_by_its_only_child_or_removed():
    html = (
        '<r backend_node_id="0"><d backend_node_id="1"><e backend_node_id="2"><c backend_node_id="3"/></e></d>'
        '<empty backend_node_id="4"/></r>'
    )
    assert pruned(html, "3") == '<r><c backend_node_id="3"/></r>'


def test_element_with_two_children_or_text_is_retained():
    html = (
        '<r backend_node_id="0"><d backend_node_id="1"><c backend_node_id="3"/><c backend_node_id="5"/></d>'
        '<p backend_node_id="6"><text backend_node_id="7">word</text></p></r>'
    )
    assert pruned(html, "3", "5", "6") == (
        '<r><d><c backend_node_id="3"/><c backend_node_id="5"/></d><p backend_node_id="6"><text>word</text></p></r>'
    )


def test_white_space_after_an_element_is_removed_with_it():
    html = (
        '<r backend_node_id="0">\n  <far backend_node_id="8"><x backend_node_id="9" title="x"/></far>\n\n\n'
        '  <d backend_node_id="1">\t<c backend_node_id="3"/>   </d>\n</r>'
    )
    # far is empty and not a sibling of c. d is replaced by c, which has its own trailing white space.
    assert pruned(html, "3") == '<r>\n  <c backend_node_id="3"/>   </r>'


def test_page_without_white_space_between_tags_has_shorter_options():
    html = (
        '<r backend_node_id="0">\n <a backend_node_id="1"><text backend_node_id="2">one two</text></a>'
        '\n <b backend_node_id="3"><text backend_node_id="4">three</text></b></r>'
    )
    spaced = show_page(Page.parse(html), ("0", "1"))
    minified = show_page(Page.parse(html.replace("\n ", "")), ("0", "1"))
    assert spaced.options[0][1] == "<r id=0> <a id=1>one two</a> <b>three</b></r>"
    assert minified.options[0][1] == "<r id=0><a id=1>one two</a><b>three</b></r>"


@pytest.mark.parametrize("html", ["", "<a>", "<a>&unknown;</a>", "no xml", "<a/><b/>"])
def test_page_that_is_not_well_formed_is_rejected(html: str):
    with pytest.raises(PageUnusable, match="not well-formed"):
        Page.parse(html)


@pytest.mark.parametrize("id", ["7", ""])
def test_error_for_a_candidate_missing_in_the_page_names_it(id: str):
    with pytest.raises(PageUnusable, match=f"candidate '{id}' is not in cleaned_html"):
        show_page(Page.parse('<a backend_node_id="1"/>'), (id,))


def test_entities_are_not_expanded():
    bomb = (
        '<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;&x;&x;&x;&x;&x;">]>'
        '<a backend_node_id="1"><text backend_node_id="2">&y;&y;&y;</text></a>'
    )
    assert "xxx" not in show_page(Page.parse(bomb), ("1",)).context


def test_page_can_be_shown_repeatedly():
    page = Page.parse(nested(4))
    assert show_page(page, ("2",)) == show_page(page, ("2",))


def test_comments_and_processing_instructions_stay_in_the_page_text():
    text = (
        '<html backend_node_id="1"><!-- top --><div backend_node_id="2"><?mark on?><a backend_node_id="3" title="x">'
        '<!-- in --><text backend_node_id="4">y</text></a></div><p backend_node_id="5"><!-- lost --></p></html>'
    )
    assert pruned(text, "3") == (
        '<html><!-- top --><div><?mark on?><a backend_node_id="3" title="x"><!-- in --><text>y</text></a></div></html>'
    )
    shown = show_page(Page.parse(text), ("3",))
    assert shown.context == "<html><!-- top --><div><?mark on?><a id=0 x><!-- in -->y</a></div></html>"


def test_comments_count_as_siblings():
    links = [f'<a backend_node_id="{n}" title="t{n}"/>' for n in range(1, 6)]
    kept = pruned(f'<r backend_node_id="0">{links[0]}{links[1]}<!-- c -->{links[2]}{links[3]}{links[4]}</r>', "5")
    assert "t2" not in kept and "t3" in kept


def test_text_element_is_no_candidate():
    with pytest.raises(PageUnusable, match="candidate '2' is a <text> element"):
        pruned('<a backend_node_id="1"><text backend_node_id="2">x</text></a>', "2")
