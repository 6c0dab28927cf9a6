"""What would make an open score certain: each leaf nobody found out about, what it could change, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from app.dashboard.effects import Effect
from app.dashboard.outline import Node, Outline
from app.dashboard.wording import REASONS, REMEDIES
from rubrics.scoring import Score, bounds
from rubrics.verdict import Outcome, Reason

_BY_A_PAGE = frozenset({Reason.CAPTURE_FAILED, Reason.CAPTURE_BLOCKED, Reason.EVIDENCE_CORRUPT})
_EVIDENCE = frozenset({"ok", "partial"})
MOST = 12
"""Each costs two folds of the tree; the ones with most at stake are worth it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLeaf:
    """A leaf that was not judged, the score if it passes and if it fails, and what would settle it."""

    leaf: Node
    worth: float
    if_passed: Score
    if_failed: Score
    why: str
    remedy: str
    mend: str | None
    """The URL whose page is missing, where that is why."""


def open_leaves(
    outline: Outline, effects: Mapping[str, Effect], pages: Sequence[Mapping[str, Any]] = ()
) -> list[OpenLeaf]:
    """The leaves that hold the score open, most at stake first; at most ``MOST``. Blocks for milliseconds.

    ``pages`` are those of the result.
    """
    bad = {str(page["url"]) for page in pages if page["outcome"] not in _EVIDENCE}
    silent = [leaf for leaf in outline.leaves if leaf.outcome == Outcome.NOT_JUDGED]
    silent.sort(key=lambda leaf: -effects[leaf.key].worth)
    return [
        OpenLeaf(
            leaf=leaf,
            worth=effects[leaf.key].worth,
            if_passed=_score(outline, leaf, 1.0),
            if_failed=_score(outline, leaf, 0.0),
            why=REASONS.get(str(leaf.facts.get("reason")), "nobody found out"),
            remedy=REMEDIES.get(str(leaf.facts.get("reason")), "retry the job"),
            mend=_to_mend(leaf, bad),
        )
        for leaf in silent[:MOST]
    ]


def _to_mend(leaf: Node, bad: Set[str]) -> str | None:
    if leaf.facts.get("reason") not in _BY_A_PAGE:
        return None
    sources = [str(url) for url in leaf.facts.get("sources") or ()]
    return next((url for url in sources if url in bad), sources[0] if sources else None)


def _score(outline: Outline, settled: Node, points: float) -> Score:
    def interval(leaf: Node) -> tuple[float, float]:
        if leaf is settled:
            return points, points
        if leaf.key in outline.unknown:
            return 0.0, 1.0
        known = 1.0 if leaf.outcome == Outcome.PASSED else 0.0
        return known, known

    return bounds(outline.root, interval)
