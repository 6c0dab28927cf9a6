"""Summary of one judged answer: the public toolkit's keys and additional ones. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from judges.leaf_usage import assign_usage_in_tree_order
from mind2web2.decisions import Decisions, LeafState, missed_steps
from mind2web2.evidence import with_first_imperfect_step
from mind2web2.verification_tree import VerificationNode
from rubrics.schema import leaf_json
from rubrics.scoring import Score, bounds
from rubrics.tree import leaves_below, statistics
from rubrics.verdict import Outcome

COMPLETE = "complete"
INCOMPLETE = "incomplete"
NO_INFO: Mapping[str, Any] = {"no_info": "No information recorded"}


class Breakdown:
    """Tree with the verdicts of its leaves at the time of creation."""

    def __init__(self, root: VerificationNode, decisions: Decisions) -> None:
        self._root = root
        self._decisions = decisions
        self._missed = missed = missed_steps(root)
        views = {id(leaf): decisions.view(leaf, missed.get(id(leaf))) for leaf in leaves_below(root)}
        charged = assign_usage_in_tree_order([view.verdict for view in views.values()], decisions.requests)
        self._views = {
            leaf: replace(view, verdict=verdict) for (leaf, view), verdict in zip(views.items(), charged, strict=True)
        }

    def public(self, infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the public keys: tree, recorded information, statistics."""
        return {
            "eval_breakdown": [{"info": list(infos) or [dict(NO_INFO)], "verification_tree": self._tree(self._root)}],
            "tree_statistics": asdict(statistics(self._root)),
        }

    def additional(self) -> dict[str, Any]:
        """Return the additional keys."""
        return {
            "status": self.status,
            "score": asdict(self.score),
            "score_strict": asdict(self.score_strict),
            "extraction_error": self._decisions.extraction_error,
            "extraction_reasons": [reason.value for reason in self._decisions.extraction_reasons],
            "cut_short": self._decisions.stop_reason,
            "usage": asdict(self._decisions.usage),
            "prompts": sorted(self._decisions.prompts),
        }

    @property
    def status(self) -> str:
        """``incomplete`` if a leaf is not judged, an extraction failed, or the script was stopped."""
        missing = any(view.verdict.outcome is Outcome.NOT_JUDGED for view in self._views.values())
        return INCOMPLETE if missing or not self._decisions.is_complete else COMPLETE

    @property
    def score(self) -> Score:
        """Score from the verdicts alone. The compatible score can be outdated, or depend on the order of calls."""
        return self._bounds(strict=False)

    @property
    def score_strict(self) -> Score:
        """Like ``score``, but a supported claim counts only with a quote found in the page."""
        return self._bounds(strict=True)

    def _bounds(self, *, strict: bool) -> Score:
        def interval(leaf: VerificationNode) -> tuple[float, float]:
            view = self._views[id(leaf)]
            if strict and view.verdict.outcome is Outcome.PASSED and view.verdict.grounded is False:
                return 0.0, 0.0
            return view.low, view.high

        score = bounds(self._root, interval)
        if self._decisions.is_complete or score.value is None or self._is_closed():
            return score
        # With all values, or more time, the script could have built another tree.
        return Score(value=None, low=0.0, high=1.0)

    def _is_closed(self) -> bool:
        """Return whether a critical child of the root has certainly failed, so that the score is 0 in any case."""
        views = [self._views[id(child)] for child in self._root.children if child.critical and id(child) in self._views]
        return any(view.high < 1.0 for view in views)

    def _tree(self, node: VerificationNode) -> dict[str, Any]:
        missed_step = self._missed.get(id(node))
        evidence = node.evidence
        if missed_step is not None:
            evidence = with_first_imperfect_step(evidence, missed_step.id)
        fields: dict[str, Any] = {
            "id": node.id,
            "desc": node.desc,
            "critical": node.critical,
            "score": node.score,
            "status": str(node.status),
            "strategy": str(node.strategy),
            "children": [self._tree(child) for child in node.children],
            "weight": node.weight,
            "evidence": evidence,
        }
        return fields if node.children else fields | self._leaf(self._views[id(node)])

    def _leaf(self, view: LeafState) -> dict[str, Any]:
        # Whether a leaf is unknown can depend on gates that the tree does not contain, hence the explicit bounds.
        return leaf_json(view.claim, view.verdict) | {"low": view.low, "high": view.high}
