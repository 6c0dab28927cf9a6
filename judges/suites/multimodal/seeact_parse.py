"""Reads the final answer of a SeeAct-style dialogue: an option letter, an action and a value.

The rules are those of the published evaluation, so that scores can be compared: contracts/mind2web.md, section 6.1.
They are strict about letter case and lenient about what surrounds the three fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

INVALID = "Invalid"
"""The ``element`` of an answer that names none."""
NO_ACTION = "None"

_ELEMENT = re.compile(r"ELEMENT: ([A-Z]{2}|[A-Z])")
_ACTION = re.compile(r"ACTION: (CLICK|SELECT|TYPE|HOVER|PRESS ENTER|TERMINATE|NONE)")
_VALUE = re.compile(r"VALUE: (.*)$", re.MULTILINE)

# An answer often begins a field by repeating what the field is for. In the letter's field that is a phrase about
# the letter or the choice; in the other two it is the format's own description. The reference deletes a phrase with the
# line breaks after it, but not with a blank: "ELEMENT: The letter. B" then has two blanks and names no letter.
_ABOUT_THE_LETTER = re.compile(
    r"(?<=ELEMENT: )"
    r"(?:Based on (?:my|your|the) analysis, )?"
    r"(?:[Tt]he )(?:(?:correct|corresponding|uppercase) )*(?:letter|choice|option|element)"
    r"(?: (?:of|for|corresponding to) (?:my|your|the)(?: correct)? (?:choice|option|element))?"
    r"(?: to select)?(?:,? based on (?:my|your|the) analysis,?)?"
    r"(?: (?:is|would be) ?)?(?: ?[.:])?\n*"
)
_FORMAT_HINTS = re.compile(
    r"(?:(?<=ACTION: )Choose an action from \{[A-Z, ]*\}\.|(?<=VALUE: )Provide additional input based on ACTION\.)\s*"
)
_LOOK_BACK = range(15, 160, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeeActReply:
    """What an answer says. ``element`` is one or two capitals or ``INVALID``, ``action`` as written or ``NO_ACTION``.

    ``value`` is the rest of its line, less outer quotes and a final dot; empty where there is none.
    """

    element: str
    action: str
    value: str


def parse_seeact(text: str) -> SeeActReply:
    """Read an answer; every text can be read, if only as one that names nothing.

    >>> parse_seeact("ELEMENT: H\\n\\nACTION: TYPE\\n\\nVALUE: \\"St. Louis.\\"")
    SeeActReply(element='H', action='TYPE', value='St. Louis')
    >>> parse_seeact("It is B, I think").element
    'Invalid'
    """
    plain = _FORMAT_HINTS.sub("", _ABOUT_THE_LETTER.sub("", text.strip()))
    action = _ACTION.search(plain)
    value = _VALUE.search(plain)
    return SeeActReply(
        element=_element(plain, None if action is None else action.start()),
        action=NO_ACTION if action is None else action[1],
        value="" if value is None else _unwrapped(_unwrapped(value[1].strip())),
    )


def _element(text: str, action_at: int | None) -> str:
    """The letter nearest before the action, where there is an action and a letter near; otherwise the first one."""
    if action_at is not None:
        for length in _LOOK_BACK:
            near = _ELEMENT.search(text[max(action_at - length, 0) : action_at])
            if near is not None:
                return near[1]
    first = _ELEMENT.search(text)
    return INVALID if first is None else first[1]


def _unwrapped(value: str) -> str:
    """One pair of outer double quotes taken off, then one final dot."""
    if value.startswith('"') and value.endswith('"'):
        value = value[1:-1]
    return value.removesuffix(".")
