"""Parser of the final answer of a SeeAct-style dialogue: option letters, action and value.

The rules are those of the published evaluation, so that scores are comparable (contracts/mind2web.md, 6.1). They are
strict about letter case and lenient about the text around the three fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

INVALID = "Invalid"
"""``element`` of an answer that names no option."""
NO_ACTION = "None"

_ELEMENT = re.compile(r"ELEMENT: ([A-Z]{2}|[A-Z])")
_ACTION = re.compile(r"ACTION: (CLICK|SELECT|TYPE|HOVER|PRESS ENTER|TERMINATE|NONE)")
_VALUE = re.compile(r"VALUE: (.*)$", re.MULTILINE)

# Answers repeat parts of the format description, anywhere in the text. The reference removes exactly these phrases, and
# up to two line breaks after some of them. It removes no blank after a dot or a colon, so two blanks are left in
# "ELEMENT: The uppercase letter of your choice. B", which then names no option.
_LETTER = "The uppercase letter of "
_LEAD_INS = re.compile(
    "|".join(
        (
            rf"{_LETTER}your choice(?:\. Choose one of the following elements if it matches the target element"
            r" based on your analysis:| based on (?:your|my|the) analysis is:|\.)\n{0,2}",
            rf"{_LETTER}my choice(?: based on the analysis)? is:\n{{0,2}}",
            rf"{_LETTER}(?:your|my) choice based on the analysis is ",
            rf"{_LETTER}(?:your|my) choice is \n{{0,2}}",
            r"The correct choice based on the analysis would be(?::\n{1,2}| :| )",
            r"The correct element to select would be(?::\n{0,2}| )",
            r"(?:Choose an action from \{CLICK, TYPE, SELECT\}|Provide additional input based on ACTION)\.\n{0,2}",
        )
    )
)
_LOOK_BACK = range(15, 160, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeeActReply:
    """Parsed answer.

    ``element`` is one or two capital letters or ``INVALID``; ``action`` is the matched text or ``NO_ACTION``. ``value``
    is the rest of its line without outer quotes and final dot, or empty.
    """

    element: str
    action: str
    value: str


def parse_seeact(text: str) -> SeeActReply:
    """Parse an answer. Any text is accepted; missing fields get their default.

    >>> parse_seeact("ELEMENT: H\\n\\nACTION: TYPE\\n\\nVALUE: \\"St. Louis.\\"")
    SeeActReply(element='H', action='TYPE', value='St. Louis')
    >>> parse_seeact("It is B, I think").element
    'Invalid'
    """
    cleaned = _LEAD_INS.sub("", text.strip())
    action = _ACTION.search(cleaned)
    value = _VALUE.search(cleaned)
    return SeeActReply(
        element=_element(cleaned, None if action is None else action.start()),
        action=NO_ACTION if action is None else action[1],
        value="" if value is None else _strip_quotes_and_dot(_strip_quotes_and_dot(value[1].strip())),
    )


def _element(text: str, action_at: int | None) -> str:
    """Return the letters closest before the action, or the first letters if there are none near it."""
    if action_at is not None:
        for length in _LOOK_BACK:
            element_match = _ELEMENT.search(text[max(action_at - length, 0) : action_at])
            if element_match is not None:
                return element_match[1]
    first = _ELEMENT.search(text)
    return INVALID if first is None else first[1]


def _strip_quotes_and_dot(value: str) -> str:
    """Remove one pair of outer double quotes, then one final dot."""
    if value.startswith('"') and value.endswith('"'):
        value = value[1:-1]
    return value.removesuffix(".")
