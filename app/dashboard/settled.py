"""What people said of a result's leaves, as the API has it in the result. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One row. ``outcome`` None: it takes another one back. ``taken_back``: the row that did so to this one."""

    id: str
    leaf: str
    outcome: str | None
    verdict: str
    reason: str
    by: str
    when: str
    stands: bool
    taken_back: Mapping[str, Any] | None

    @property
    def agrees(self) -> bool:
        """Whether it says what the judge said."""
        return self.outcome == self.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """All words on one result: what stands on each leaf, and what was ever said of it, the newest first."""

    standing: Mapping[str, Word] = field(default_factory=dict)
    said: Mapping[str, Sequence[Word]] = field(default_factory=dict)
    scores: Mapping[str, Any] | None = None
    """The three scores with people's word in place of the judge's; None while no word stands."""


def settled(result: Mapping[str, Any]) -> Settled:
    """What stands in a result beside the judge's own word."""
    rows: Sequence[Mapping[str, Any]] = result.get("overrides") or ()
    taken = {row["withdraws"]: row for row in rows if row["withdraws"] is not None}
    said: dict[str, list[Word]] = {}
    for row in reversed(rows):
        if row["outcome"] is not None:
            said.setdefault(str(row["leaf"]), []).append(_word(row, taken.get(row["id"])))
    standing = {leaf: word for leaf, words in said.items() for word in words if word.stands}
    return Settled(standing=standing, said=said, scores=result.get("with_overrides"))


def _word(row: Mapping[str, Any], taken_back: Mapping[str, Any] | None) -> Word:
    return Word(
        id=str(row["id"]),
        leaf=str(row["leaf"]),
        outcome=row["outcome"],
        verdict=str(row["verdict"]),
        reason=str(row["reason"]),
        by=str(row["by"]),
        when=str(row["created_at"]),
        stands=bool(row["in_force"]),
        taken_back=taken_back,
    )
