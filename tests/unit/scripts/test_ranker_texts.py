"""Input texts and ranks of the candidate ranker, and an F1 variant, which only golden files need."""

from __future__ import annotations

import pytest
from golden.pages import ranker_document, ranker_query, ranks_of
from golden.texts import op_f1_without_punctuation

from judges.suites.mind2web.page import Page


def test_equal_scores_retain_their_order():
    assert ranks_of({"a": 0.1, "b": 0.5, "c": 0.1, "d": 0.5}) == {"b": 0, "d": 1, "a": 2, "c": 3}


def test_ranker_query_has_the_last_three_actions():
    assert ranker_query("find it", []) == "task is: find it\nPrevious actions: "
    assert ranker_query("find it", ["a", "b", "c", "d"]) == "task is: find it\nPrevious actions: b; c; d"


def test_ranker_document_has_the_ancestors_and_the_element():
    html = (
        '<html backend_node_id="0"><div backend_node_id="1" role="main"><form backend_node_id="2" name="search">'
        '<a backend_node_id="3" title="Go"><text backend_node_id="4">now</text></a></form></div></html>'
    )
    assert ranker_document(Page.parse(html), "3") == "ancestors: /html/div main/form search\ntarget: (a id=0 gonow)"
    assert ranker_document(Page.parse(html), "0").startswith("ancestors: \ntarget: (html id=0(div main(form search")


def test_ranker_document_has_fifty_words_of_ancestors_and_a_hundred_of_target():
    words = " ".join(f"w{n}" for n in range(20))
    above = "".join(f'<i backend_node_id="1{n}"><text backend_node_id="2{n}">{words}</text></i>' for n in range(4))
    inner = "".join(f'<b backend_node_id="3{n}"><text backend_node_id="4{n}">{words}</text></b>' for n in range(9))
    html = f'<r backend_node_id="0">{above}<c backend_node_id="5">{inner}</c></r>'
    ancestors, target = ranker_document(Page.parse(html), "5").split("\n")
    assert len(ancestors.split()) == 1 + 50
    assert ancestors.endswith("w18 w19")
    assert len(target.split()) == 1 + 100


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        ("TYPE - a", "TYPE a", 1.0),
        ("TYPE () a", "TYPE a", 1.0),  # a substring of the list of punctuation
        ("TYPE )( a", "TYPE a", 0.8),  # not a substring of it
        ("- ,", "", 1.0),
    ],
)
def test_alternative_f1_ignores_punctuation(predicted: str, gold: str, f1: float):
    assert op_f1_without_punctuation(predicted, gold) == pytest.approx(f1)
