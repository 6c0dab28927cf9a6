"""Parser, labels and F1 of the integration guide's port, which differs from the published evaluation.

The code reproduces the first commit and the later head of the port, to explain its figures (contracts/mind2web.md,
0.2). Only conformance checks use it; reports do not.
"""

from __future__ import annotations

import re
from collections import Counter
from string import ascii_uppercase as _LETTERS

_LETTER = re.compile(r"\banswer\s*[:\-]\s*\(?([A-Z]{1,3})\b", re.IGNORECASE)
_FIRST_ACTION = re.compile(r"\baction\s*[:\-]\s*([A-Z_ ]+)", re.IGNORECASE)
_LATER_ACTION = re.compile(r"\baction\s*[:\-]\s*([A-Z_]+)", re.IGNORECASE)
_VALUE = re.compile(r"\bvalue\s*[:\-]\s*([^\n]*)", re.IGNORECASE)
_ACTION_SYNONYMS = {"ENTER": "TYPE", "INPUT": "TYPE", "CHOOSE": "SELECT", "TAP": "CLICK"}
_NO_VALUE = frozenset({"", "none", "null", "n/a"})


def parse_first(raw: str) -> list[str | None]:
    """Parse a reply like the first commit: letter and action. Blanks within an action are removed.

    >>> parse_first("Answer: B\\nAction: SELECT OPTION\\nValue: 2")
    ['B', 'SELECTOPTION']
    """
    action = _FIRST_ACTION.search(raw)
    return [_letter(raw), None if action is None else _action("".join(action[1].split()))]


def parse_later(raw: str) -> list[str | None]:
    """Parse a reply like the later head: letter, first word of the action, value.

    >>> parse_later("Answer: B\\nAction: SELECT OPTION\\nValue: '2'")
    ['B', 'SELECT', '2']
    """
    action, value = _LATER_ACTION.search(raw), _VALUE.search(raw)
    return [
        _letter(raw),
        None if action is None else _action(action[1].replace("_", "")),
        None if value is None else _value(value[1]),
    ]


def operation_f1(gold_op: str | None, gold_value: str | None, op: str | None, value: str | None) -> float:
    """Return the F1 over the multisets of words of the values, without case and punctuation; 0 if the actions differ.

    >>> operation_f1("TYPE", "St. Louis", "TYPE", "st louis"), operation_f1("TYPE", "a a b", "TYPE", "a b b")
    (1.0, 0.6666666666666666)
    """
    if gold_op is None or op is None or gold_op != op:
        return 0.0
    gold, predicted = _words(gold_value), _words(value)
    if not gold and not predicted:
        return 1.0
    common = (gold & predicted).total()
    return 2 * common / (gold.total() + predicted.total())


def label(index: int) -> str:
    """Return the letters of the option at a 0-based index.

    >>> [label(index) for index in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    letters = ""
    index += 1
    while index:
        index, last = divmod(index - 1, len(_LETTERS))
        letters = _LETTERS[last] + letters
    return letters


def _letter(raw: str) -> str | None:
    match = _LETTER.search(raw)
    return None if match is None else match[1].upper()


def _action(name: str) -> str:
    upper = name.upper()
    return _ACTION_SYNONYMS.get(upper, upper)


def _value(written: str) -> str | None:
    value = written.strip().strip("\"'").strip()
    return None if value.lower() in _NO_VALUE else value


def _words(value: str | None) -> Counter[str]:
    return Counter(re.sub(r"[^\w\s]", "", (value or "").lower()).split())
