from __future__ import annotations

import pytest

from judges.suites.multimodal.dialogue import INVALID, NO_ACTION, parse_seeact


def parsed(text: str) -> tuple[str, str, str]:
    reply = parse_seeact(text)
    return reply.element, reply.action, reply.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ELEMENT: H\n\nACTION: CLICK\n\nVALUE: None", ("H", "CLICK", "None")),
        ("ELEMENT: C\nACTION: TERMINATE", ("C", "TERMINATE", "")),
        ("ELEMENT: NONE\nACTION: NONE\nVALUE: None", ("NO", "NONE", "None")),
        ("I would choose B.", (INVALID, NO_ACTION, "")),
        ("ELEMENT: D\nACTION: CLICKING", ("D", "CLICK", "")),
        ("", (INVALID, NO_ACTION, "")),
    ],
)
def test_three_fields_are_parsed(text: str, expected: tuple[str, str, str]):
    assert parsed(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('"St. Louis."', "St. Louis"),
        ("New York.", "New York"),
        ('"a".', "a"),
        ('""x""', "x"),
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


@pytest.mark.parametrize(
    "filler",
    [
        "The uppercase letter of your choice.\n",
        "The uppercase letter of your choice based on my analysis is:\n\n",
        "The correct element to select would be:\n",
        "The uppercase letter of your choice. Choose one of the following elements if it matches the target element "
        "based on your analysis:\n\n",
    ],
)
def test_filler_before_the_letter_is_ignored(filler: str):
    assert parsed(f"ELEMENT: {filler}J\n\nACTION: CLICK\n\nVALUE: None") == ("J", "CLICK", "None")


def test_hints_of_the_format_are_ignored():
    text = (
        "ELEMENT: F\nACTION: Choose an action from {CLICK, TYPE, SELECT}.\nTYPE\n"
        "VALUE: Provide additional input based on ACTION.\nboston"
    )
    assert parsed(text) == ("F", "TYPE", "boston")
