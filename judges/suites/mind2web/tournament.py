"""Multiple-choice tournament that selects one element, and its score (contracts/mind2web.md, 4).

Pure: the caller asks the model and passes in each reply. The quirks are those of the published evaluation, because
scores depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from judges.suites.mind2web.parsing import NONE_LETTER, Parsed, op_f1
from judges.suites.multimodal.options import option_index

GROUP_SIZE = 5


class Prediction(NamedTuple):
    """Chosen element (``backend_node_id``) and operation."""

    node_id: str
    op_string: str


EMPTY_PREDICTION = Prediction("", "")
"""The value for "no prediction", as in predictions files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """Score of a step: ``element`` is 0 or 1, ``op_f1`` in [0, 1]; ``success``: both are 1."""

    element: int
    op_f1: float
    success: bool


@dataclass(slots=True)
class Tournament:
    """State of the rounds of one step. ``queue`` contains the remaining candidates.

    ``keep_earlier_pick`` controls a letter beyond the options: True ignores it (evaluation of fine-tuned models), False
    discards the earlier pick.
    """

    queue: list[str]
    keep_earlier_pick: bool = False
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
            if not self.keep_earlier_pick:
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


def score_prediction(prediction: Prediction, positives: Sequence[str], gold: str) -> StepOutcome:
    """Score a prediction. Every positive is correct; without a positive or a prediction, everything is 0.

    ``gold`` is the ``parsing.gold_op_string`` of the step.
    """
    if not positives or not prediction.node_id:
        return StepOutcome(element=0, op_f1=0.0, success=False)
    element, f1 = int(prediction.node_id in positives), op_f1(prediction.op_string, gold)
    return StepOutcome(element=element, op_f1=f1, success=element == 1 and f1 == 1.0)
