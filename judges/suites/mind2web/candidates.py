"""The ranker: what it is shown, how scores become ranks, and how good those are (contracts/mind2web.md, 2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from judges.suites.mind2web.page import Page
from judges.suites.mind2web.representation import first_words, number, written

HISTORY = 3
ANCESTOR_WORDS = 50
TARGET_WORDS = 100
MRR_CUT = 50
CUTS = (3, 5, 10, 20, 50, 100)

_OPENED = re.compile(r"\s*\(\s*")
_CLOSED = re.compile(r"\s*\)\s*")


def ranker_query(task: str, history: Sequence[str]) -> str:
    """What candidates are compared with: the task and the last few actions.

    >>> ranker_query("t", ["a", "b", "c", "d"])
    'task is: t\\nPrevious actions: b; c; d'
    """
    return f"task is: {task}\nPrevious actions: {'; '.join(history[-HISTORY:])}"


def ranker_document(page: Page, candidate_id: str) -> str:
    """A candidate as the ranker reads it: the way down to it, then the element itself.

    Raises:
        PageUnusable: the page does not hold it.
    """
    root = page.pruned((candidate_id,))
    [(_, element), *_] = number(root)
    target = first_words(written(element, html_brackets=False), TARGET_WORDS)
    parent, ancestors = element.getparent(), ""
    if parent is not None:
        parent.remove(element)
        above = _CLOSED.sub("", _OPENED.sub("/", written(root, html_brackets=False)))
        ancestors = " ".join(above.split()[-ANCESTOR_WORDS:])
    return f"ancestors: {ancestors}\ntarget: {target}"


def ranks_of(scores: Mapping[str, float]) -> dict[str, int]:
    """Ranks by score, the best 0; equal scores keep the order in which they are listed.

    >>> ranks_of({"11": 0.9, "12": 0.95, "13": 0.9})
    {'12': 0, '11': 1, '13': 2}
    """
    best_first = sorted(scores, key=lambda id: -scores[id])  # a stable sort
    return {id: rank for rank, id in enumerate(best_first)}


@dataclass(slots=True)
class RankingMetrics:
    """How well the positives of steps are ranked, step by step.

    A step counts by its best positive; one without a positive, or with none that is ranked, counts 0 throughout.
    """

    steps: int = 0
    reciprocal: float = 0.0
    found: dict[int, int] = field(default_factory=lambda: dict.fromkeys((1, *CUTS), 0))

    def add(self, positive_ranks: Iterable[int]) -> None:
        self.steps += 1
        best = min(positive_ranks, default=None)
        if best is None:
            return
        if best < MRR_CUT:
            self.reciprocal += 1 / (best + 1)
        for cut in self.found:
            self.found[cut] += best < cut

    def report(self) -> dict[str, float]:
        """By the official names; empty where there was no step."""
        if not self.steps:
            return {}
        recall = {f"recall@{cut}": self.found[cut] / self.steps for cut in CUTS}
        return {"mrr": self.reciprocal / self.steps, "acc": self.found[1] / self.steps} | recall
