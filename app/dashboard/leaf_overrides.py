"""Overrides of a result's leaves, parsed from the JSON of the result. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafOverride:
    """Override of a leaf. ``withdrawal`` is the row that withdrew it."""

    id: str
    leaf: str
    outcome: str
    verdict: str
    reason: str
    by: str
    created_at: str
    in_force: bool
    withdrawal: Mapping[str, Any] | None

    @property
    def agrees(self) -> bool:
        """Return whether it confirms the verdict of the judge."""
        return self.outcome == self.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOverrides:
    """Overrides of one result: the one in force and all, newest first, by leaf."""

    in_force: Mapping[str, LeafOverride] = field(default_factory=dict)
    by_leaf: Mapping[str, Sequence[LeafOverride]] = field(default_factory=dict)
    scores: Mapping[str, Any] | None = None
    """The three scores with the overrides in force; None if no override is in force."""


def result_overrides(result: Mapping[str, Any]) -> ResultOverrides:
    rows: Sequence[Mapping[str, Any]] = result.get("overrides") or ()
    withdrawals = {row["withdraws"]: row for row in rows if row["withdraws"] is not None}
    by_leaf: dict[str, list[LeafOverride]] = {}
    for row in reversed(rows):
        if row["outcome"] is not None:
            by_leaf.setdefault(str(row["leaf"]), []).append(_override(row, withdrawals.get(row["id"])))
    in_force = {leaf: override for leaf, every in by_leaf.items() for override in every if override.in_force}
    return ResultOverrides(in_force=in_force, by_leaf=by_leaf, scores=result.get("with_overrides"))


def _override(row: Mapping[str, Any], withdrawal: Mapping[str, Any] | None) -> LeafOverride:
    return LeafOverride(
        id=str(row["id"]),
        leaf=str(row["leaf"]),
        outcome=str(row["outcome"]),
        verdict=str(row["verdict"]),
        reason=str(row["reason"]),
        by=str(row["by"]),
        created_at=str(row["created_at"]),
        in_force=bool(row["in_force"]),
        withdrawal=withdrawal,
    )
