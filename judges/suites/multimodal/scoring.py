"""Scoring of the final answer to one step of Multimodal-Mind2Web~ (contracts/mind2web.md, 6.3). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judges.suites.multimodal.elements import is_one_of
from judges.suites.multimodal.operations import operation_f1, operation_string
from judges.suites.multimodal.options import option_index
from judges.suites.multimodal.readings import Counting, Reading
from judges.suites.multimodal.seeact_parse import INVALID, SeeActReply
from judges.suites.multimodal.tilde_rows import TildeRow


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerdict:
    """Score of one step.

    ``picked`` is the chosen candidate, or None for the "none" option and for invalid letters. ``operation`` and
    ``gold`` are the compared strings, ``f1`` their token F1 by reading.
    """

    picked: str | None
    element: bool
    operation: str
    gold: str
    f1: Mapping[Reading, float]

    def success(self, reading: Reading) -> bool:
        return self.element and self.f1[reading] == 1.0


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
        element=picked is not None and is_one_of(picked, row.targets),
        operation=operation_string(answer.action, answer.value),
        gold=operation_string(row.op, row.value),
        f1=f1,
    )


def _picked(row: TildeRow, element: str) -> str | None:
    index = None if element == INVALID else option_index(element)
    return row.candidates[index] if index is not None and index < len(row.candidates) else None
