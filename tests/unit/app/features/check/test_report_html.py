"""Statements of a report in its HTML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from app.features.check.report_html import MarkedSpan, plain_report, report_html


def spans(text: str, *parts: str) -> list[MarkedSpan]:
    return [MarkedSpan(text.index(part), text.index(part) + len(part)) for part in parts]


def statement_texts(html: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in HTMLParser(html).css("[data-statement]"):
        number = str(node.attributes["data-statement"])
        found[number] = found.get(number, "") + node.text()
    return found


@pytest.mark.parametrize(
    ("text", "parts", "shown"),
    [
        ("- **A b. C d** e.\n- f", ["**A b.", "C d** e."], ["A b.", "C d e."]),
        ("# A title [1]\n\n> A quote [2].", ["A title [1]", "A quote [2]."], ["A title [1]", "A quote [2]."]),
        ("See [a b](http://a.example/c_(d)). E.", ["See [a b](http://a.example/c_(d))."], ["See a b."]),
        ("水是湿的[1]。冰是冷的。", ["水是湿的[1]。", "冰是冷的。"], ["水是湿的[1]。", "冰是冷的。"]),
    ],
)
def test_each_statement_is_marked_within_the_formatting_of_the_report(text: str, parts: list[str], shown: list[str]):
    html = report_html(text, spans(text, *parts))
    assert html is not None
    assert statement_texts(html) == {str(number): each for number, each in enumerate(shown)}


def test_internal_marks_of_products_are_not_shown():
    text = "[cite_start]Oslo grew.\ue200cite\ue202turn0search1\ue201 It rained [1]."
    marked = spans(text, "[cite_start]Oslo grew.\ue200cite\ue202turn0search1\ue201", "It rained [1].")
    html = report_html(text, marked)
    assert html is not None
    assert statement_texts(html) == {"0": "Oslo grew.", "1": "It rained [1]."}
    assert HTMLParser(plain_report(text, marked)).text() == "Oslo grew. It rained [1]."


def test_cells_of_a_table_row_are_marked_and_the_table_is_kept():
    text = "| a | b |\n|---|---|\n| x \\| y | 1 [2] |\n"
    row = MarkedSpan(text.index("| x"), text.index("[2] |") + 5, is_row=True)
    html = report_html(text, [row])
    assert html is not None
    assert [node.text() for node in HTMLParser(html).css("td [data-statement='0']")] == ["x | y", "1 [2]"]


@given(st.lists(st.text("ab *_`[]()#>-|.\n1~\\<&", max_size=12), max_size=6))
def test_no_text_is_lost_and_no_sign_remains(parts: list[str]):
    text, marked = "", []
    for part in parts:
        marked.append(MarkedSpan(len(text), len(text) + len(part)))
        text += part
    html = report_html(text, marked)
    assert html is not None
    words = [char for char in text if char in "ab"]
    assert [char for char in HTMLParser(html).text() if char in "ab"] == words or "](" in text
    assert not any(0x2E30 <= ord(char) < 0x2E50 for char in html)
