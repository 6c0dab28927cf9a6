"""Overrides of a result as JSON values, and the scores with these overrides. The result itself does not change."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from judges.analysis.overrides import OverrideLike, judged_tree, override_scores, overrides_in_force
from judges.result import score_json
from rubrics.result_json import may_lack_parts

if TYPE_CHECKING:
    # The replay of a bundle needs no database, and the database libraries are slow to import.
    from app.storage.overrides import Override


def override_fields(result: Mapping[str, Any], rows: Sequence[Override]) -> dict[str, Any]:
    """Return the fields ``overrides`` (oldest first) and ``with_overrides`` of a result."""
    return {"overrides": overrides_json(rows), "with_overrides": scores_with_overrides(result, rows)}


def override_json(row: Override, *, is_in_force: bool) -> dict[str, Any]:
    """Return one override as results and lists show it. ``is_in_force``: the newest on its leaf, and not withdrawn."""
    fields = dataclasses.asdict(row)
    del fields["created_at"]
    return {**fields, "in_force": is_in_force, "created_at": time_json(row.created_at)}


def overrides_json(rows: Sequence[Override]) -> list[dict[str, Any]]:
    """Return all overrides of one result, oldest first."""
    ids = {row.id for row in overrides_in_force(rows).values()}
    return [override_json(row, is_in_force=row.id in ids) for row in rows]


def time_json(at: datetime) -> str:
    """Format a time as the API does: ISO 8601 in UTC, ending in ``Z``."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def scores_with_overrides(result: Mapping[str, Any], overrides: Sequence[OverrideLike]) -> dict[str, Any] | None:
    """Return the scores with the overrides in force instead of the verdicts; None if no override is in force.

    Raises:
        InvalidNode: A weight in the tree is not a finite number above zero.
    """
    root, effective = judged_tree(result), overrides_in_force(overrides)
    if root is None or not effective:
        return None
    passed = {leaf: override.outcome == "passed" for leaf, override in effective.items()}
    scores = override_scores(root, passed, is_whole=not may_lack_parts(result))
    return {
        "score": score_json(scores.score),
        "score_strict": score_json(scores.score_strict),
        "final_score": scores.final_score,
        "leaves": len(effective),
    }
