"""Multiple-choice tournament that selects one element, and its score (docs/mind2web-rules.md).

Pure: the caller asks the model and passes in each reply. The quirks are those of the published evaluation, because
scores depend on them.

The parser of model replies and gold target texts (docs/mind2web-rules.md) is deliberately strict: quotes,
final dots, "None" and other variants are not normalized, because the published scores were computed this way.

Precomputed predictions are scored without a model. Their format is detected: the published predictions ``[sample_id,
node_id, op_string]``, or the predictions file of a suite report. A step without prediction has "" and "".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from judges.suites.errors import SuiteError
from judges.suites.json_items import read_items
from judges.suites.questions import option_index
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
    return Parsed(letter=NONE_LETTER if letter is None else letter[1], op_string=parse_operation(text))


def gold_op_string(op: str, value: str) -> str:
    """Return the gold operation, in the form of a predicted ``op_string``.

    It passes through the parser of replies, so only the first line of a value counts.

    >>> gold_op_string("TYPE", "boston\\nma"), gold_op_string("CLICK", "x")
    ('TYPE boston', 'CLICK ')
    """
    return parse_operation(f"Action: {op}\n{'' if op == CLICK else f'Value: {value}'}".strip())


def op_f1(predicted: str, gold: str) -> float:
    """Return the F1 over the sets of words of two ``op_string``. Case and punctuation matter, order does not.

    >>> op_f1("CLICK None", "CLICK ")
    0.6666666666666666
    """
    return token_f1(predicted.split(), gold.split())


def parse_operation(text: str) -> str:
    """Return the operation and its value in a reply, separated by one blank; a missing part is empty."""
    op, value = _OP.search(text), _VALUE.search(text)
    return f"{'' if op is None else op[1].strip()} {'' if value is None else value[1].strip()}"


GROUP_SIZE = 5


class Prediction(NamedTuple):
    """Chosen element (``backend_node_id``) and operation."""

    node_id: str
    op_string: str


EMPTY_PREDICTION = Prediction("", "")
"""The value for "no prediction", as in predictions files."""


@dataclass(slots=True)
class Tournament:
    """State of the rounds of one step. ``queue`` contains the remaining candidates.

    A letter beyond the options discards the earlier pick.
    """

    queue: list[str]
    _last: Prediction | None = field(default=None, init=False)

    def next_group(self) -> tuple[str, ...] | None:
        """Remove the next group of candidates from the queue and return it, or None if at most one is left."""
        if len(self.queue) <= 1:
            return None
        group, self.queue = tuple(self.queue[:GROUP_SIZE]), self.queue[GROUP_SIZE:]
        return group

    def reply(self, options: Sequence[str], parsed: Parsed) -> str | None:
        """Apply the reply for a group, whose option ids are given in document order. Returns the picked id, or None."""
        if parsed.letter == NONE_LETTER:
            return None
        index = option_index(parsed.letter)
        if index is None or index > len(options):
            self._last = None
            return None
        picked = options[index - 1]
        self.queue.append(picked)
        self._last = Prediction(picked, parsed.op_string)
        return picked

    @property
    def prediction(self) -> Prediction:
        """The last pick, or ``EMPTY_PREDICTION`` if it was removed from the queue without being confirmed."""
        return EMPTY_PREDICTION if self._last is None or not self.queue else self._last


def shuffled(positives: Sequence[str], negatives: Sequence[str], random: Random) -> list[str]:
    """Return the order of play. ``Random(s)`` gives the same order as ``random.seed(s); random.shuffle(...)``."""
    order = [*positives, *negatives]
    random.shuffle(order)
    return order


def score_prediction(prediction: Prediction, positives: Sequence[str], gold: str) -> tuple[int, float]:
    """Return the score of the element, 0 or 1, and the operation F1. Both are 1 in a successful step.

    Every positive is correct; without a positive or a prediction, both are 0. ``gold`` is the ``gold_op_string`` of the
    step.
    """
    if not positives or not prediction.node_id:
        return 0, 0.0
    return int(prediction.node_id in positives), op_f1(prediction.op_string, gold)


def read_predictions(path: Path) -> dict[str, Prediction]:
    """Return the predictions by step id. Blocks.

    Raises:
        SuiteError: the file does not exist, or is not a JSON list. An entry has an unknown format, or its step occurs
            twice. The message names the entry.
    """
    predictions: dict[str, Prediction] = {}
    for number, entry in enumerate(read_items(path)):
        place = f"{path.name}, entry {number}"
        id, prediction = _read(entry, place)
        if id in predictions:
            raise SuiteError(f"{place}: duplicate prediction for step {id!r}")
        if prediction is not None:
            predictions[id] = prediction
    return predictions


def _read(entry: Any, place: str) -> tuple[str, Prediction | None]:
    """Read an entry. A step of a suite report that was not judged has no prediction.

    In the guide's protocol, an operation without an element is a prediction.
    """
    if isinstance(entry, dict):
        if entry.get("status") == "not_judged":
            return str(entry.get("id")), None
        prediction = entry.get("prediction")
        values = [entry.get("id"), *(prediction if isinstance(prediction, list) else ())]
    else:
        values = entry if isinstance(entry, list) else []
    if len(values) != 3 or not all(isinstance(value, str) for value in values):
        raise SuiteError(
            f'{place}: must be [sample_id, node_id, op_string], strings that are "" without a prediction, or an object '
            "with id and prediction"
        )
    id, *prediction = values
    is_empty = isinstance(entry, list) and not prediction[0]
    return id, EMPTY_PREDICTION if is_empty else Prediction(*prediction)
