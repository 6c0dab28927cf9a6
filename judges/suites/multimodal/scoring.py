"""Scoring of the final answer to one step of Multimodal-Mind2Web~ (contracts/mind2web.md, 6.3). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judges.suites.multimodal.options import option_index
from judges.suites.multimodal.readings import Counting, Reading
from judges.suites.multimodal.seeact_parse import INVALID, SeeActReply
from judges.suites.multimodal.tilde_rows import TildeRow
from judges.suites.multimodal.vocabulary import token_ids
from judges.suites.step_metrics import token_f1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerdict:
    """Score of one step.

    ``picked`` is the chosen candidate, or None for the "none" option and for invalid letters. ``operation`` and
    ``gold`` are the compared strings, ``f1`` their token F1 by reading.
    """

    picked: str | None
    element_correct: bool
    operation: str
    gold: str
    f1: Mapping[Reading, float]

    def success(self, reading: Reading) -> bool:
        return self.element_correct and self.f1[reading] == 1.0


def score_answer(row: TildeRow, answer: SeeActReply) -> StepVerdict:
    """Score an answer. Element and operation are scored independently."""
    picked = _picked(row, answer.element)
    f1: dict[Reading, float] = {}
    for keep in (False, True):
        predicted = operation_string(answer.action, answer.value, keep_click_value=keep)
        gold = operation_string(row.op, row.value, keep_click_value=keep)
        for counting in Counting:
            f1[Reading.of(counting, keep_click_value=keep)] = operation_f1(predicted, gold, counting)
    return StepVerdict(
        picked=picked,
        element_correct=picked is not None and is_one_of(picked, row.targets),
        operation=operation_string(answer.action, answer.value),
        gold=operation_string(row.op, row.value),
        f1=f1,
    )


def _picked(row: TildeRow, element: str) -> str | None:
    index = None if element == INVALID else option_index(element)
    return row.candidates[index] if index is not None and index < len(row.candidates) else None


_ROOT = re.compile(r"""\s*<[A-Za-z][\w:.-]*\s(?:[^<>]*?\s)?bnid=["']?(?P<bnid>[^\s"'<>/]+)""")


def root_id(element: str) -> str | None:
    """Return the ``bnid`` of the outermost element, quoted or not, or None.

    >>> root_id("<a bnid=36929><text bnid=36932>Fox</text></a>"), root_id('<a role="x" bnid="7"/>'), root_id("<a/>")
    ('36929', '7', None)
    """
    match = _ROOT.match(element)
    return None if match is None else match["bnid"]


def is_one_of(element: str, targets: Iterable[str]) -> bool:
    """Return whether an element is among the targets: by id, or by text if one of the two has no id."""
    own = root_id(element)
    for target in targets:
        other = root_id(target)
        if element == target if own is None or other is None else own == other:
            return True
    return False


CLICK = "CLICK"


def operation_string(op: str, value: str, *, keep_click_value: bool = False) -> str:
    """Return an operation as the string that is compared.

    >>> operation_string("CLICK", "None"), operation_string("TYPE", "New York")
    ('click', 'type new york')
    >>> operation_string("CLICK", "None", keep_click_value=True)
    'click none'
    """
    dropped = op == CLICK and not keep_click_value
    return (op if dropped else f"{op} {value}").strip().lower()


def operation_f1(predicted: str, gold: str, counting: Counting = Counting.SET) -> float:
    """Return the token F1 of two operation strings."""
    return token_f1(token_ids(predicted), token_ids(gold), multiset=counting is Counting.MULTISET)
