"""Ranks of candidates, and the quality of the ranker.

The ranks of the candidates of a step come from a scores file, from the data, or from the listed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import count

from judges.suites.errors import RankMissing
from judges.suites.mind2web.candidate_scores import ScoreTable
from judges.suites.mind2web.data import Candidate, Step


class RankOrigin(StrEnum):
    """Source of the ranks. It determines which published scores a run can be compared with."""

    SCORES = "scores"
    """The scores file of a ranker: the published setting."""
    DATA = "data"
    """The ``rank`` of every candidate in the data."""
    LISTED = "listed"
    """No ranks: positives first, then negatives as listed. The correct element is always among the options, so scores
    are higher than published ones and must not be compared with them.
    """


def ranked(step: Step, ranks: ScoreTable | None) -> tuple[Step, RankOrigin]:
    """Return the step with a rank for every candidate.

    Raises:
        RankMissing: the scores file lacks the step or one of its candidates.
    """
    candidates = (*step.positives, *step.negatives)
    if ranks is not None:
        known = ranks.of(step.sample_id)
        if known is None:
            raise RankMissing(f"{step.place}: {ranks.name} has no ranks for step {step.sample_id!r}")
        missing = next((candidate.id for candidate in candidates if candidate.id not in known), None)
        if missing is not None:
            raise RankMissing(
                f"{step.place}: {ranks.name} has no rank for candidate {missing!r} of step {step.sample_id!r}"
            )
        return _changed(step, lambda one: one._replace(rank=known[one.id])), RankOrigin.SCORES
    if candidates and all(candidate.rank is not None for candidate in candidates):
        return step, RankOrigin.DATA
    numbers = count()
    return _changed(step, lambda one: one._replace(rank=next(numbers))), RankOrigin.LISTED


def with_known_ranks(step: Step, ranks: ScoreTable | None) -> tuple[Step, RankOrigin]:
    """Return the step with the ranks and scores that are known. Unlike ``ranked``, candidates may have none."""
    known = None if ranks is None else ranks.of(step.sample_id)
    if ranks is None or known is None:
        has_ranks = any(candidate.rank is not None for candidate in (*step.positives, *step.negatives))
        return step, RankOrigin.DATA if has_ranks else RankOrigin.LISTED
    scores = ranks.scores_of(step.sample_id)
    changed = _changed(step, lambda one: one._replace(rank=known.get(one.id), score=scores.get(one.id)))
    return changed, RankOrigin.SCORES


def _changed(step: Step, change: Callable[[Candidate], Candidate]) -> Step:
    return replace(step, positives=tuple(map(change, step.positives)), negatives=tuple(map(change, step.negatives)))


def ids_in_top_k(candidates: tuple[Candidate, ...], top_k: int) -> list[str]:
    """Return the ids of the candidates with a rank below ``top_k``, in their order."""
    return [candidate.id for candidate in candidates if candidate.rank is not None and candidate.rank < top_k]


MRR_CUT = 50
CUTS = (3, 5, 10, 20, 50, 100)


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
