"""Two-question dialogue of one ~ step: describe the page, then choose an option. The second answer is scored.

The parser of the final answer finds option letters, action and value. Its rules are those of the published evaluation
(SeeAct), so that scores are comparable (docs/mind2web-rules.md). They are strict about letter case and lenient
about the text around the three fields.

Precomputed answers are scored without a model. Their file is a JSON list or JSON lines. An entry identifies its step by
``task_id`` and ``step``. It contains either ``raw_output``, the final answer of a model, or the parsed ``element`` (an
option's letters), ``action`` and ``value``. The predictions file of a suite report has this format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judges.llm.client import Message
from judges.suites.errors import DataUnreadable
from judges.suites.json_items import read_items
from judges.suites.multimodal.row_files import RowFields, read_rows
from judges.suites.multimodal.tilde_rows import TildeRow, api_messages
from judges.suites.questions import Questions

MAX_TOKENS = 500
_SEPARATOR = "\n\n"
"""Precedes the first answer when it is sent back as an assistant message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """Both raw answers of a model."""

    thought: str
    answer: str


def dialogue_questions(row: TildeRow) -> Questions[Dialogue]:
    """Yield the two questions of a row. Encodes its pictures."""
    first = api_messages(row.first_turns)
    thought = yield first
    between: Message = {"role": "assistant", "content": _SEPARATOR + thought}
    answer = yield (*first, between, *api_messages(row.second_turns))
    return Dialogue(thought=thought, answer=answer)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """Answer from a file. ``raw`` is None if the file contains only the parsed fields."""

    reply: SeeActReply
    raw: str | None


def read_predictions(path: Path) -> dict[str, RecordedAnswer]:
    """Return the answers by step id.

    Raises:
        SuiteError: an entry is malformed, or a step has two answers. The message names the entry.
    """
    answers: dict[str, RecordedAnswer] = {}
    entries = (row.values for row in read_rows(path)) if path.suffix == ".jsonl" else read_items(path)
    for number, entry in enumerate(entries):
        place = f"{path.name}, entry {number}"
        fields = RowFields.of(entry, place)
        id = f"{fields.text('task_id', needed=True)}:{fields.whole('step')}"
        if entry.get("status") in ("skipped", "not_judged"):
            continue  # from a suite report: this step has no answer
        if id in answers:
            raise DataUnreadable(place, f"is a second answer to step {id}")
        answers[id] = _answer(entry, fields)
    return answers


def _answer(entry: Mapping[str, Any], fields: RowFields) -> RecordedAnswer:
    raw = entry.get("raw_output")
    if isinstance(raw, str):
        return RecordedAnswer(reply=parse_seeact(raw), raw=raw)
    if "element" not in entry and "action" not in entry:
        raise fields.error("raw_output", "is missing, and there is no element or action either")
    reply = SeeActReply(
        element=fields.text("element") or INVALID, action=fields.text("action") or NO_ACTION, value=fields.text("value")
    )
    return RecordedAnswer(reply=reply, raw=None)
