"""Pieces of the integration guide's port, which is not the published evaluation: contracts/mind2web.md, 0.2.

Kept so that its numbers can be understood: how its first commit and its later head read an answer, label options and
compare operations. Reports are made with none of it.
"""

from __future__ import annotations

import re
from collections import Counter
from string import ascii_uppercase as _LETTERS

_LETTER = re.compile(r"\banswer\s*[:\-]\s*\(?([A-Z]{1,3})\b", re.IGNORECASE)
_FIRST_ACTION = re.compile(r"\baction\s*[:\-]\s*([A-Z_ ]+)", re.IGNORECASE)
_LATER_ACTION = re.compile(r"\baction\s*[:\-]\s*([A-Z_]+)", re.IGNORECASE)
_VALUE = re.compile(r"\bvalue\s*[:\-]\s*([^\n]*)", re.IGNORECASE)
_SAME_ACTION = {"ENTER": "TYPE", "INPUT": "TYPE", "CHOOSE": "SELECT", "TAP": "CLICK"}
_NO_VALUE = frozenset({"", "none", "null", "n/a"})


def parse_first(raw: str) -> list[str | None]:
    """As the first commit reads an answer: letter and action; blanks within an action are dropped.

    >>> parse_first("Answer: B\\nAction: SELECT OPTION\\nValue: 2")
    ['B', 'SELECTOPTION']
    """
    action = _FIRST_ACTION.search(raw)
    return [_letter(raw), None if action is None else _action("".join(action[1].split()))]


def parse_later(raw: str) -> list[str | None]:
    """As the later head does: letter, the first word of the action, and a value.

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
    """F1 over the words of the values, repetitions counted, letter case and punctuation aside; 0 for another action.

    >>> operation_f1("TYPE", "St. Louis", "TYPE", "st louis"), operation_f1("TYPE", "a a b", "TYPE", "a b b")
    (1.0, 0.6666666666666666)
    """
    if gold_op is None or op is None or gold_op != op:
        return 0.0
    gold, said = _words(gold_value), _words(value)
    if not gold and not said:
        return 1.0
    common = (gold & said).total()
    return 2 * common / (gold.total() + said.total())


def label(index: int) -> str:
    """The letters of an option, counted from 0, as many as it takes.

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
    found = _LETTER.search(raw)
    return None if found is None else found[1].upper()


def _action(name: str) -> str:
    upper = name.upper()
    return _SAME_ACTION.get(upper, upper)


def _value(written: str) -> str | None:
    value = written.strip().strip("\"'").strip()
    return None if value.lower() in _NO_VALUE else value


def _words(value: str | None) -> Counter[str]:
    return Counter(re.sub(r"[^\w\s]", "", (value or "").lower()).split())
