"""Parser of model replies, and gold target texts (contracts/mind2web.md, 3.3 and 4.1).

Parsing is deliberately strict: quotes, final dots, "None" and other variants are not normalized, because the published
scores were computed this way.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from judges.suites.step_metrics import token_f1

NONE_LETTER = "A"
CLICK = "CLICK"

_LETTER = re.compile(r"Answer: ([A-F])")
_OP = re.compile(r"Action: (CLICK|SELECT|TYPE)")
_VALUE = re.compile(r"Value: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """Parsed reply of one round.

    ``letter`` is the chosen option, ``NONE_LETTER`` if none was chosen. ``op_string`` is the operation and its value,
    separated by one blank; a missing part is empty.
    """

    letter: str
    op_string: str


def parse_llm(raw: str) -> Parsed:
    """Parse the reply of a chat model. An unreadable reply counts as "none of the above".

    >>> parse_llm("Answer: C.\\nAction: SELECT\\nValue: Queen")
    Parsed(letter='C', op_string='SELECT Queen')
    >>> parse_llm("Answer: **C**\\nAction: Click")
    Parsed(letter='A', op_string=' ')
    """
    text = raw.strip()
    letter = _LETTER.search(text)
    return Parsed(letter=NONE_LETTER if letter is None else letter[1], op_string=_op_string(text))


def parse_seq2seq(raw: str) -> Parsed:
    """Parse the reply of a fine-tuned model, which starts with the letter.

    Raises:
        IndexError: the reply is empty. The published evaluation crashes in this case, too.

    >>> parse_seq2seq("C.\\nAction: CLICK")
    Parsed(letter='C', op_string='CLICK ')
    """
    text = raw.strip()
    return Parsed(letter=text[0], op_string=_op_string(text))


def gold_op_string(op: str, value: str) -> str:
    """Return the gold operation, in the form of a predicted ``op_string``.

    It passes through the parser of replies, so only the first line of a value counts.

    >>> gold_op_string("TYPE", "boston\\nma"), gold_op_string("CLICK", "x")
    ('TYPE boston', 'CLICK ')
    """
    return _op_string(gold_text("", op, value).strip())


def gold_text(letter: str, op: str, value: str) -> str:
    """Return the target text of fine-tuning.

    >>> gold_text("C", "SELECT", "2 Guests"), gold_text("B", "CLICK", ""), gold_text("A", "CLICK", "")
    ('C.\\nAction: SELECT\\nValue: 2 Guests', 'B.\\nAction: CLICK\\n', 'A.')
    """
    if letter == NONE_LETTER:
        return f"{NONE_LETTER}."
    return f"{letter}.\nAction: {op}\n{'' if op == CLICK else f'Value: {value}'}"


def op_f1(predicted: str, gold: str) -> float:
    """Return the F1 over the sets of words of two ``op_string``. Case and punctuation matter, order does not.

    >>> op_f1("CLICK None", "CLICK ")
    0.6666666666666666
    """
    return token_f1(predicted.split(), gold.split())


def op_f1_without_punctuation(predicted: str, gold: str) -> float:
    """Return the F1 variant of the generation baseline, Synapse and AWM.

    It drops words that are substrings of ``string.punctuation``: a comma, but also "()".

    >>> op_f1_without_punctuation("SELECT $3,000 - $5,000", "SELECT $3,000 $5,000")
    1.0
    """
    return token_f1(_without_punctuation(predicted), _without_punctuation(gold))


def _without_punctuation(text: str) -> list[str]:
    return [word for word in text.split() if word not in string.punctuation]


def _op_string(text: str) -> str:
    op, value = _OP.search(text), _VALUE.search(text)
    return f"{'' if op is None else op[1].strip()} {'' if value is None else value[1].strip()}"
