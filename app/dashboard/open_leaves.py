"""Leaves that keep a score open: why each was not judged, what to do, and the score if it passes or fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, overload

from app.dashboard.effects import Effect
from app.dashboard.outline import Node, Outline, leaf_points
from app.dashboard.wording import REASONS, remedy_words
from rubrics.node import Strategy
from rubrics.scoring import NodeScore, Score, bounded_score, score_nodes, score_with
from rubrics.verdict import Outcome, Reason

_PAGE_REASONS = frozenset({Reason.CAPTURE_FAILED, Reason.CAPTURE_BLOCKED, Reason.EVIDENCE_CORRUPT})
_EVIDENCE_OUTCOMES = frozenset({"ok", "partial"})
PER_PAGE = 20
"""Leaves in one response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLeaf:
    """Leaf that was not judged, with the score if it passes and if it fails, and a remedy."""

    leaf: Node
    if_passed: Score
    if_failed: Score
    reason: str
    remedy: str
    unusable_url: str | None
    """URL of a page without usable evidence, if the leaf was not judged because of it."""


def open_leaves(outline: Outline, effects: Mapping[str, Effect], pages: Sequence[Mapping[str, Any]] = ()) -> OpenLeaves:
    """Return the leaves that keep the score open, largest ``worth`` first. ``pages`` are those of the result."""
    unusable_urls = {str(page["url"]) for page in pages if page["outcome"] not in _EVIDENCE_OUTCOMES}
    unjudged = [leaf for leaf in outline.leaves if leaf.outcome == Outcome.NOT_JUDGED]
    unjudged.sort(key=lambda leaf: -effects[leaf.key].worth)
    return OpenLeaves(outline, unjudged, unusable_urls)


class OpenLeaves(Sequence[OpenLeaf]):
    """Leaves that keep a score open. The scores of a leaf are computed when it is read. CPU-bound."""

    def __init__(self, outline: Outline, leaves: Sequence[Node], unusable_urls: Set[str]) -> None:
        self._outline = outline
        self._leaves = leaves
        self._unusable_urls = unusable_urls
        self._scores: dict[object, tuple[Score, Score]] = {}

    @cached_property
    def _lowest(self) -> Mapping[int, NodeScore]:
        return score_nodes(self._outline.root, partial(leaf_points, self._outline.unknown, 0.0))

    def __len__(self) -> int:
        return len(self._leaves)

    @overload
    def __getitem__(self, place: int) -> OpenLeaf: ...
    @overload
    def __getitem__(self, place: slice) -> list[OpenLeaf]: ...
    def __getitem__(self, place: int | slice) -> OpenLeaf | list[OpenLeaf]:
        if isinstance(place, slice):
            return [self._open_leaf(leaf) for leaf in self._leaves[place]]
        return self._open_leaf(self._leaves[place])

    def _open_leaf(self, leaf: Node) -> OpenLeaf:
        # Siblings with equal weights have equal effects, except in sequences.
        parent, reason = leaf.parent, str(leaf.fields.get("reason"))
        is_step = parent is None or parent.strategy == Strategy.SEQUENTIAL
        same = leaf.key if is_step else (id(parent), leaf.weight, leaf.critical)
        if same not in self._scores:
            self._scores[same] = self._scores_of(leaf)
        if_failed, if_passed = self._scores[same]
        return OpenLeaf(
            leaf=leaf,
            if_failed=if_failed,
            if_passed=if_passed,
            reason=REASONS.get(reason, "It was not judged."),
            remedy=remedy_words(reason),
            unusable_url=_unusable_url(leaf, self._unusable_urls),
        )

    def _scores_of(self, leaf: Node) -> tuple[Score, Score]:
        """Return the scores if the leaf fails and if it passes. Scores are monotone in every leaf."""
        tree, path = self._outline, self._outline.path(leaf.key)
        if not tree.highest:  # a weight is invalid
            return (bounded_score(0.0, 1.0),) * 2
        low, high = tree.bounds_of(tree.root)
        highest_if_failed = score_with(path, 0.0, tree.highest, partial(leaf_points, tree.unknown, 1.0))
        lowest_if_passed = score_with(path, 1.0, self._lowest, partial(leaf_points, tree.unknown, 0.0))
        return bounded_score(low, highest_if_failed), bounded_score(lowest_if_passed, high)


def _unusable_url(leaf: Node, unusable_urls: Set[str]) -> str | None:
    if leaf.fields.get("reason") not in _PAGE_REASONS:
        return None
    sources = [str(url) for url in leaf.fields.get("sources") or ()]
    return next((url for url in sources if url in unusable_urls), sources[0] if sources else None)
