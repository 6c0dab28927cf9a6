from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.suites.multimodal.dialogue import INVALID, NO_ACTION, parse_seeact


def parsed(text: str) -> tuple[str, str, str]:
    reply = parse_seeact(text)
    return reply.element, reply.action, reply.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ELEMENT: H\n\nACTION: CLICK\n\nVALUE: None", ("H", "CLICK", "None")),
        ("ELEMENT: AB\nACTION: SELECT\nVALUE: two", ("AB", "SELECT", "two")),
        ("ELEMENT: C\nACTION: PRESS ENTER\nVALUE: None", ("C", "PRESS ENTER", "None")),
        ("ELEMENT: C\nACTION: TERMINATE", ("C", "TERMINATE", "")),
        ("ELEMENT: NONE\nACTION: NONE\nVALUE: None", ("NO", "NONE", "None")),
        ("I would choose B.", (INVALID, NO_ACTION, "")),
        ("ELEMENT: **C**\nACTION: **CLICK**", (INVALID, NO_ACTION, "")),
        ("element: C\naction: click", (INVALID, NO_ACTION, "")),
        ("ELEMENT:C\nACTION:CLICK\nVALUE:x", (INVALID, NO_ACTION, "")),
        ("ELEMENT: D\nACTION: CLICKING", ("D", "CLICK", "")),
        ("ELEMENT: D\nACTION: None", ("D", NO_ACTION, "")),
        ("", (INVALID, NO_ACTION, "")),
    ],
)
def test_three_fields_are_parsed(text: str, expected: tuple[str, str, str]):
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"St. Louis."', "St. Louis"),
        ('"new york."', "new york"),
        ("New York.", "New York"),
        ('"a".', "a"),
        ('""x""', "x"),
        ("3.5", "3.5"),
        ('"', ""),
        ("'quoted'", "'quoted'"),
        ("e.g..", "e.g"),
    ],
)
def test_value_is_stripped_of_quotes_and_a_final_dot_twice(value: str, expected: str):
    # A dot after the closing quote protects the quotes in the first round; the second round removes them.
    assert parse_seeact(f"VALUE: {value}\nmore").value == expected


def test_value_ends_with_its_line():
    assert parse_seeact("ACTION: TYPE\nVALUE: one\ntwo").value == "one"


def test_letter_closest_before_the_action_counts():
    text = "First I thought ELEMENT: A. " + "y" * 60 + "\nELEMENT: K\n\nACTION: CLICK"
    assert parse_seeact(text).element == "K"


def test_letter_far_before_the_action_is_the_first_in_the_text():
    text = "ELEMENT: A\n" + "y" * 200 + "\nACTION: CLICK\nELEMENT: B"
    assert parse_seeact(text).element == "A"


def test_first_letter_of_the_smallest_window_counts():
    text = "ELEMENT: A ELEMENT: B\nACTION: CLICK"
    assert parse_seeact(text).element == "B"
    assert parse_seeact("ELEMENT: A ELEMENT: B\n\n\n\n\n\nACTION: CLICK").element == "B"


@pytest.mark.parametrize(
    "filler",
    [
        "The uppercase letter of your choice.\n",
        "The uppercase letter of your choice.\n\n",
        "The uppercase letter of my choice is ",
        "The uppercase letter of your choice based on my analysis is:\n\n",
        "The correct choice based on the analysis would be:\n\n",
        "The correct choice based on the analysis would be ",
        "The correct element to select would be:\n",
        "The correct element to select would be ",
        "The uppercase letter of your choice based on your analysis is:\n\n",
        "The uppercase letter of my choice based on the analysis is ",
        "The uppercase letter of my choice is:\n\n",
        "The uppercase letter of your choice is \n\n",
        "The uppercase letter of your choice. Choose one of the following elements if it matches the target element "
        "based on your analysis:\n\n",
    ],
)
def test_filler_before_the_letter_is_ignored(filler: str):
    assert parsed(f"ELEMENT: {filler}J\n\nACTION: CLICK\n\nVALUE: None") == ("J", "CLICK", "None")


@pytest.mark.parametrize(
    "text",
    [
        "The uppercase letter of your choice.\n\nELEMENT: J",
        "Choose an action from {CLICK, TYPE, SELECT}.\n\nELEMENT: J",
        "Well. The correct element to select would be:\nELEMENT: J",
        "ELEMENT: Provide additional input based on ACTION.\nJ",
    ],
)
def test_lead_in_is_ignored_anywhere(text: str):
    assert parsed(f"{text}\n\nACTION: CLICK\n\nVALUE: None") == ("J", "CLICK", "None")


def test_phrase_that_the_reference_does_not_know_stays():
    assert parse_seeact("ELEMENT: The uppercase letter of your choice is:\nJ").element == "T"
    assert parse_seeact("ELEMENT: The correct choice based on the analysis would be: J").element == "T"
    assert parse_seeact("ELEMENT: The correct element to select would be \nJ").element == INVALID


def test_lead_in_that_leaves_two_blanks_defeats_the_reference():
    for lead_in in ("The uppercase letter of your choice.", "The correct element to select would be:"):
        assert parse_seeact(f"ELEMENT: {lead_in} J\n\nACTION: CLICK").element == INVALID


def test_hints_of_the_format_are_ignored():
    text = (
        "ELEMENT: F\nACTION: Choose an action from {CLICK, TYPE, SELECT}.\nTYPE\n"
        "VALUE: Provide additional input based on ACTION.\nboston"
    )
    assert parsed(text) == ("F", "TYPE", "boston")


def test_filler_text_inside_a_value_is_retained():
    assert (
        parse_seeact("ELEMENT: F\nACTION: TYPE\nVALUE: the letter of the element").value == "the letter of the element"
    )


@given(st.text())
def test_any_text_is_parsed(text: str):
    reply = parse_seeact(text)
    assert reply.element == INVALID or reply.element.isupper()


@given(st.text(alphabet='ELMNT: ACIOV\n".'))
def test_text_similar_to_a_reply_is_parsed(text: str):
    parse_seeact(text)
