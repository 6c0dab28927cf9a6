"""What people say of a result's leaves, as JSON values, and the scores with it. The result itself stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from judges.analysis.overrides import Word, in_force, judged_tree, overruled
from judges.result import score_json

if TYPE_CHECKING:
    # Playing a bundle back has no database, whose libraries take long to load.
    from app.storage.overrides import Override


def said_json(result: Mapping[str, Any], rows: Sequence[Override]) -> dict[str, Any]:
    """All that was said of a result, oldest first, and the scores with it: ``overrides`` and ``with_overrides``."""
    return {"overrides": overrides_json(rows), "with_overrides": scores_with(result, rows)}


def override_json(row: Override, *, stands: bool) -> dict[str, Any]:
    """One row, as results and lists have it. ``stands``: it is the last word on its leaf, and was not taken back."""
    return {
        "id": row.id,
        "result_id": row.result_id,
        "leaf": row.leaf,
        "outcome": row.outcome,
        "verdict": row.verdict,
        "model": row.model,
        "reason": row.reason,
        "by": row.by,
        "key_owner": row.key_owner,
        "withdraws": row.withdraws,
        "in_force": stands,
        "created_at": time_json(row.created_at),
    }


def overrides_json(rows: Sequence[Override]) -> list[dict[str, Any]]:
    """All rows of one result, the oldest first."""
    standing = {row.id for row in in_force(rows).values()}
    return [override_json(row, stands=row.id in standing) for row in rows]


def time_json(at: datetime) -> str:
    """As every other time of ours goes out."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def scores_with(result: Mapping[str, Any], words: Sequence[Word]) -> dict[str, Any] | None:
    """The scores with people's word in place of the judge's; None where nobody spoke, or all of it was taken back.

    Raises:
        InvalidNode: the tree has a weight that is not a finite number above zero.
    """
    root, standing = judged_tree(result), in_force(words)
    if root is None or not standing:
        return None
    found = overruled(root, {leaf: word.outcome == "passed" for leaf, word in standing.items()})
    return {
        "score": score_json(found.score),
        "score_strict": score_json(found.score_strict),
        "final_score": found.final_score,
        "leaves": len(standing),
    }
