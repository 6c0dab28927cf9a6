"""Scoring of the final answer to one step of Multimodal-Mind2Web~, and report of a run. Pure.

See docs/mind2web-rules.md. Operations are compared by their tokens of cl100k_base. The report has every reading
that the published description leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from judges.suites.multimodal.dialogue import INVALID, SeeActReply
from judges.suites.multimodal.tilde_rows import TildeRow
from judges.suites.questions import option_index
from judges.suites.rules import Counting, Reading
from judges.suites.step_metrics import (
    ScoreBounds,
    StepScore,
    SuiteScore,
    bounds,
    intervals_95,
    published_row,
    token_f1,
)
from judges.tokenizers import load_encoding


def token_ids(text: str) -> tuple[int, ...]:
    """Return the tokens of a text. Special tokens are treated as ordinary text.

    The first call unpacks the vocabulary (about 0.5 s), so make it in a thread.

    >>> token_ids("type boston")
    (1337, 293, 9611)
    """
    return tuple(load_encoding("cl100k_base").encode_ordinary(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerdict:
    """Score of one step.

    ``picked`` is the chosen candidate, or None for the "none" option and for invalid letters. ``operation``
    is the compared string, ``f1`` its token F1 by reading.
    """

    picked: str | None
    element_correct: bool
    operation: str
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


Scored = Mapping[str, Any]
"""Record of a step: ``task_id``, ``website``, ``domain``, ``status`` (scored or not_judged) and, if scored,
``element_acc`` and ``f1`` by reading.
"""

_CARD: Final = (
    ("claude-3-5-sonnet-20240620", (50.05, 81.04, 38.47, 3.52)),
    ("gemini-1.5-flash-001", (38.61, 77.64, 32.03, 3.00)),
    ("claude-3-opus-20240229", (37.20, 80.48, 30.48, 1.41)),
    ("claude-3-sonnet-20240229", (35.28, 72.41, 27.70, 2.82)),
    ("gpt-4o", (36.02, 62.39, 27.02, 2.11)),
    ("gemini-1.5-pro-001", (34.53, 71.51, 21.91, 0.0)),
    ("claude-3-haiku-20240307", (25.77, 78.35, 20.68, 0.0)),
)
PUBLISHED: Final = tuple(published_row(system, "", *figures) for system, figures in _CARD)
"""Leaderboard of the dataset card. It does not say whether the means are micro or macro, or over which split; the task
rates are most likely those of test_website.
"""


def report(steps: Sequence[Scored], *, reading: Reading, seed: int) -> dict[str, Any]:
    """Return the figures of all steps that count. Each step that was not judged widens the bounds of every figure.

    A figure is None if any step was not judged; ``bounds`` then contains its lowest and highest value.
    """
    scores = [_score(step, reading) for step in steps]
    by_reading = {each: bounds([_score(step, each) for step in steps]) for each in Reading}
    bounded = by_reading[reading]
    certain = bounded.certain
    groups = asdict(certain) if certain else {}
    return {
        **(_flat(certain) if certain else dict.fromkeys(_flat(bounded.low))),
        **_ends(bounded),
        "readings": {str(each): _flat(one.certain) if one.certain else _ends(one) for each, one in by_reading.items()},
        **{name: groups.get(name) for name in ("error_ratio", "websites", "domains")},
        "intervals_95": intervals_95(scores, seed=seed) if certain and scores else None,
    }


def _ends(bounded: ScoreBounds) -> dict[str, Any]:
    return {"bounds": {"low": _flat(bounded.low), "high": _flat(bounded.high)}}


def _score(step: Scored, reading: Reading) -> StepScore:
    judged = step["status"] == "scored"
    operation = float(step["f1"][reading]) if judged else 0.0
    element = float(step["element_acc"]) if judged else 0.0
    return StepScore(
        task_id=step["task_id"],
        website=step["website"],
        domain=step["domain"],
        element=element,
        operation=operation,
        success=element == 1.0 and operation == 1.0,
        judged=judged,
    )


def _flat(score: SuiteScore) -> dict[str, float]:
    return {
        "element_accuracy_micro": score.micro.element,
        "operation_token_f1_micro": score.micro.operation,
        "step_success_micro": score.micro.step,
        "element_accuracy_macro": score.macro.element,
        "operation_token_f1_macro": score.macro.operation,
        "step_success_macro": score.macro.step,
        "task_success": score.task_success,
    }
