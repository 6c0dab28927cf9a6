"""Candidate ranker: input texts, ranks and ranking metrics (contracts/mind2web.md, 2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from judges.suites.mind2web.page import Page
from judges.suites.mind2web.representation import bracket_text, first_words, number_candidates

HISTORY = 3
ANCESTOR_WORDS = 50
TARGET_WORDS = 100
MRR_CUT = 50
CUTS = (3, 5, 10, 20, 50, 100)

_OPENED = re.compile(r"\s*\(\s*")
_CLOSED = re.compile(r"\s*\)\s*")


def ranker_query(task: str, history: Sequence[str]) -> str:
    """Return the query of the ranker: the task and the last three actions.

    >>> ranker_query("t", ["a", "b", "c", "d"])
    'task is: t\\nPrevious actions: b; c; d'
    """
    return f"task is: {task}\nPrevious actions: {'; '.join(history[-HISTORY:])}"


def ranker_document(page: Page, candidate_id: str) -> str:
    """Return the text of a candidate for the ranker: its ancestors, then the element.

    Raises:
        PageUnusable: the page does not contain the candidate.
    """
    root = page.pruned((candidate_id,))
    [(_, element), *_] = number_candidates(root)
    target = first_words(bracket_text(element, html_brackets=False), TARGET_WORDS)
    parent, ancestors = element.getparent(), ""
    if parent is not None:
        parent.remove(element)
        above = _CLOSED.sub("", _OPENED.sub("/", bracket_text(root, html_brackets=False)))
        ancestors = " ".join(above.split()[-ANCESTOR_WORDS:])
    return f"ancestors: {ancestors}\ntarget: {target}"


def ranks_of(scores: Mapping[str, float]) -> dict[str, int]:
    """Return ranks by descending score, starting at 0. Equal scores keep their order.

    >>> ranks_of({"11": 0.9, "12": 0.95, "13": 0.9})
    {'12': 0, '11': 1, '13': 2}
    """
    best_first = sorted(scores, key=lambda id: -scores[id])  # a stable sort
    return {id: rank for rank, id in enumerate(best_first)}


@dataclass(slots=True)
class RankingMetrics:
    """Ranking quality of positive candidates, accumulated over steps.

    The best-ranked positive of a step counts. A step without a ranked positive counts 0 in every figure.
    """

    steps: int = 0
    reciprocal: float = 0.0
    hits: dict[int, int] = field(default_factory=lambda: dict.fromkeys((1, *CUTS), 0))

    def add(self, positive_ranks: Iterable[int]) -> None:
        self.steps += 1
        best = min(positive_ranks, default=None)
        if best is None:
            return
        if best < MRR_CUT:
            self.reciprocal += 1 / (best + 1)
        for cut in self.hits:
            self.hits[cut] += best < cut

    def report(self) -> dict[str, float]:
        """Return the figures under their official names, or an empty dict if there are no steps."""
        if not self.steps:
            return {}
        recall = {f"recall@{cut}": self.hits[cut] / self.steps for cut in CUTS}
        return {"mrr": self.reciprocal / self.steps, "acc": self.hits[1] / self.steps} | recall
