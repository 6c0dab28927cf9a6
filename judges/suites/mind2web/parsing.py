"""Reads what a model said in one round, and writes what it should have said: contracts/mind2web.md, 3.3 and 4.1.

Strict on purpose: quotes, final dots, "None" and other spellings are left as they are, since published scores were
made that way.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from judges.suites.metrics import token_f1

NONE_LETTER = "A"
LETTERS = "ABCDEF"
CLICK = "CLICK"

_LETTER = re.compile(r"Answer: ([A-F])")
_OP = re.compile(r"Action: (CLICK|SELECT|TYPE)")
_VALUE = re.compile(r"Value: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """``letter`` is the option chosen, ``NONE_LETTER`` for none of them; ``op_string`` is the operation and its value
    with one blank between, each empty where it is missing.
    """

    letter: str
    op_string: str


def parse_llm(raw: str) -> Parsed:
    """Read the answer of a chat model; every text can be read, if only as "none of them".

    >>> parse_llm("Answer: C.\\nAction: SELECT\\nValue: Queen")
    Parsed(letter='C', op_string='SELECT Queen')
    >>> parse_llm("Answer: **C**\\nAction: Click")
    Parsed(letter='A', op_string=' ')
    """
    text = raw.strip()
    letter = _LETTER.search(text)
    return Parsed(letter=NONE_LETTER if letter is None else letter[1], op_string=_op_string(text))


def parse_seq2seq(raw: str) -> Parsed:
    """Read the answer of a fine-tuned model, which begins with the letter.

    Raises:
        IndexError: it is empty, which the published evaluation does not survive either.

    >>> parse_seq2seq("C.\\nAction: CLICK")
    Parsed(letter='C', op_string='CLICK ')
    """
    text = raw.strip()
    return Parsed(letter=text[0], op_string=_op_string(text))


def gold_op_string(op: str, value: str) -> str:
    """What the predicted ``op_string`` is compared with.

    >>> gold_op_string("TYPE", "boston"), gold_op_string("CLICK", "x")
    ('TYPE boston', 'CLICK ')
    """
    return f"{op} {'' if op == CLICK else value}"


def gold_text(letter: str, op: str, value: str) -> str:
    """What a model should have said: the target text of fine-tuning.

    >>> gold_text("C", "SELECT", "2 Guests"), gold_text("B", "CLICK", ""), gold_text("A", "CLICK", "")
    ('C.\\nAction: SELECT\\nValue: 2 Guests', 'B.\\nAction: CLICK\\n', 'A.')
    """
    if letter == NONE_LETTER:
        return f"{NONE_LETTER}."
    return f"{letter}.\nAction: {op}\n{'' if op == CLICK else f'Value: {value}'}"


def op_f1(predicted: str, gold: str) -> float:
    """F1 over the sets of words of two ``op_string``; letter case and punctuation count, order does not.

    >>> op_f1("CLICK None", "CLICK ")
    0.6666666666666666
    """
    return token_f1(predicted.split(), gold.split())


def op_f1_without_punctuation(predicted: str, gold: str) -> float:
    """The variant of the generation baseline, Synapse and AWM: words that stand within the row of all ASCII punctuation
    (a comma, but also "()") are dropped.

    >>> op_f1_without_punctuation("SELECT $3,000 - $5,000", "SELECT $3,000 $5,000")
    1.0
    """
    return token_f1(_without_punctuation(predicted), _without_punctuation(gold))


def _without_punctuation(text: str) -> list[str]:
    return [word for word in text.split() if word not in string.punctuation]


def _op_string(text: str) -> str:
    op, value = _OP.search(text), _VALUE.search(text)
    return f"{'' if op is None else op[1].strip()} {'' if value is None else value[1].strip()}"
