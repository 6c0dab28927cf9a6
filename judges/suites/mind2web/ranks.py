"""Ranks of the candidates of a step: from a scores file, from the data, or by listed order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import count
from typing import Protocol

from judges.suites.mind2web.errors import RankMissing
from judges.suites.mind2web.steps import Candidate, Step


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


class RankLookup(Protocol):
    """A scores file."""

    @property
    def name(self) -> str: ...

    def of(self, sample_id: str) -> Mapping[str, int] | None:
        """Return the ranks of a step's candidates by id, or None for an unknown step. Blocks."""
        ...


def ranked(step: Step, ranks: RankLookup | None) -> tuple[Step, RankOrigin]:
    """Return the step with a rank for every candidate.

    Raises:
        RankMissing: the scores file lacks the step or one of its candidates.
    """
    candidates = (*step.positives, *step.negatives)
    if ranks is not None:
        known = ranks.of(step.sample_id)
        if known is None:
            raise RankMissing(f"{step.place}: {ranks.name} has no ranks for step {step.sample_id!r}")
        for one in candidates:
            if one.id not in known:
                raise RankMissing(
                    f"{step.place}: {ranks.name} has no rank for candidate {one.id!r} of step {step.sample_id!r}",
                    candidate=one.id,
                )
        return _with_ranks(step, {one.id: known[one.id] for one in candidates}), RankOrigin.SCORES
    if candidates and all(one.rank is not None for one in candidates):
        return step, RankOrigin.DATA
    numbers = count()
    return (
        replace(
            step,
            positives=tuple(one._replace(rank=next(numbers)) for one in step.positives),
            negatives=tuple(one._replace(rank=next(numbers)) for one in step.negatives),
        ),
        RankOrigin.LISTED,
    )


def ids_in_top_k(candidates: tuple[Candidate, ...], top_k: int) -> list[str]:
    """Return the ids of the candidates with a rank below ``top_k``, in their order."""
    return [one.id for one in candidates if one.rank is not None and one.rank < top_k]


def _with_ranks(step: Step, ranks: Mapping[str, int]) -> Step:
    return replace(
        step,
        positives=tuple(one._replace(rank=ranks[one.id]) for one in step.positives),
        negatives=tuple(one._replace(rank=ranks[one.id]) for one in step.negatives),
    )
