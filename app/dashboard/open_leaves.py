"""Leaves that keep a score open: why each was not judged, what to do, and the score if it passes or fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from app.dashboard.effects import Effect
from app.dashboard.outline import Node, Outline
from app.dashboard.wording import REASONS, remedy_words
from rubrics.scoring import Score, bounds
from rubrics.verdict import Outcome, Reason

_PAGE_REASONS = frozenset({Reason.CAPTURE_FAILED, Reason.CAPTURE_BLOCKED, Reason.EVIDENCE_CORRUPT})
_EVIDENCE_OUTCOMES = frozenset({"ok", "partial"})
MAX_LEAVES = 12
"""Maximum number of leaves to return. Each needs two computations of the score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLeaf:
    """Leaf that was not judged, with the score if it passes and if it fails, and a remedy."""

    leaf: Node
    worth: float
    """Part of the whole score at stake."""
    if_passed: Score
    if_failed: Score
    reason: str
    remedy: str
    unusable_url: str | None
    """URL of a page without usable evidence, if the leaf was not judged because of it."""


def open_leaves(
    outline: Outline, effects: Mapping[str, Effect], pages: Sequence[Mapping[str, Any]] = ()
) -> list[OpenLeaf]:
    """Return at most ``MAX_LEAVES`` leaves that keep the score open, largest ``worth`` first. CPU-bound.

    ``pages`` are the pages of the result.
    """
    unusable_urls = {str(page["url"]) for page in pages if page["outcome"] not in _EVIDENCE_OUTCOMES}
    unjudged = [leaf for leaf in outline.leaves if leaf.outcome == Outcome.NOT_JUDGED]
    unjudged.sort(key=lambda leaf: -effects[leaf.key].worth)
    return [
        OpenLeaf(
            leaf=leaf,
            worth=effects[leaf.key].worth,
            if_passed=_score_if(outline, leaf, 1.0),
            if_failed=_score_if(outline, leaf, 0.0),
            reason=REASONS.get(str(leaf.fields.get("reason")), "It was not judged."),
            remedy=remedy_words(str(leaf.fields.get("reason"))),
            unusable_url=_unusable_url(leaf, unusable_urls),
        )
        for leaf in unjudged[:MAX_LEAVES]
    ]


def _unusable_url(leaf: Node, unusable_urls: Set[str]) -> str | None:
    if leaf.fields.get("reason") not in _PAGE_REASONS:
        return None
    sources = [str(url) for url in leaf.fields.get("sources") or ()]
    return next((url for url in sources if url in unusable_urls), sources[0] if sources else None)


def _score_if(outline: Outline, decided: Node, points: float) -> Score:
    """Return the score if ``decided`` had this many points."""

    def interval(leaf: Node) -> tuple[float, float]:
        if leaf is decided:
            return points, points
        if leaf.key in outline.unknown:
            return 0.0, 1.0
        known = 1.0 if leaf.outcome == Outcome.PASSED else 0.0
        return known, known

    return bounds(outline.root, interval)
