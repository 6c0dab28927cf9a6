"""The rounds by which one element is chosen out of many, and what the outcome is worth: contracts/mind2web.md, 4.

Pure: who asks the model hands in each reply. Its oddities are the published evaluation's, and scores depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from judges.suites.mind2web.parsing import NONE_LETTER, Parsed, op_f1

GROUP = 5


class Prediction(NamedTuple):
    """The element chosen, by its ``backend_node_id``, and the operation on it."""

    node_id: str
    op_string: str


NOTHING = Prediction("", "")
"""How predictions files write that nothing was chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """``element`` is 0 or 1, ``op_f1`` in [0, 1]; ``success`` is whether both are 1."""

    element: int
    op_f1: float
    success: bool


@dataclass(slots=True)
class Tournament:
    """``queue`` holds who is still in. With ``keeps_earlier`` a letter beyond the options changes nothing (the
    evaluation of fine-tuned models); otherwise it takes back what was chosen before.
    """

    queue: list[str]
    keeps_earlier: bool = False
    _last: Prediction | None = field(default=None, init=False)

    def next_group(self) -> tuple[str, ...] | None:
        """Take the next candidates to ask about out of the queue; None when at most one is left."""
        if len(self.queue) <= 1:
            return None
        group, self.queue = tuple(self.queue[:GROUP]), self.queue[GROUP:]
        return group

    def reply(self, options: Sequence[str], parsed: Parsed) -> str | None:
        """Take in what was said about a group, whose ids are given in document order; returns the id picked."""
        if parsed.letter == NONE_LETTER:
            return None
        place = ord(parsed.letter) - ord(NONE_LETTER) - 1
        if not 0 <= place < len(options):
            if not self.keeps_earlier:
                self._last = None
            return None
        self.queue.append(options[place])
        self._last = Prediction(options[place], parsed.op_string)
        return options[place]

    @property
    def prediction(self) -> Prediction:
        """The last pick, unless it went out again unconfirmed."""
        return NOTHING if self._last is None or not self.queue else self._last


def shuffled(positives: Sequence[str], negatives: Sequence[str], random: Random) -> list[str]:
    """The order of play. ``Random(s)`` gives what ``random.seed(s); random.shuffle(...)`` gives."""
    order = [*positives, *negatives]
    random.shuffle(order)
    return order


def outcome(prediction: Prediction, positives: Sequence[str], gold: str) -> StepOutcome:
    """What a prediction is worth. Every positive counts as right; without one, or without a prediction, all is 0.

    ``gold`` is ``parsing.gold_op_string`` of the step.
    """
    if not positives or not prediction.node_id:
        return StepOutcome(element=0, op_f1=0.0, success=False)
    element, f1 = int(prediction.node_id in positives), op_f1(prediction.op_string, gold)
    return StepOutcome(element=element, op_f1=f1, success=element == 1 and f1 == 1.0)
