"""Summary of one judged answer: the public toolkit's keys and additional ones. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from judges.runner import assign_usage_in_tree_order
from mind2web2.decisions import Decisions, LeafState, missed_steps
from mind2web2.evidence import with_first_imperfect_step
from mind2web2.verification_tree import VerificationNode
from rubrics.scoring import Score, bounded_score, bounds, counts_strictly
from rubrics.tree import leaves_below, statistics
from rubrics.tree_json import leaf_json
from rubrics.verdict import Outcome, Verdict

COMPLETE = "complete"
INCOMPLETE = "incomplete"
OPEN = Score(value=None, low=0.0, high=1.0)
ADDED_KEYS = frozenset(
    {
        "status",
        "score",
        "score_strict",
        "extraction_error",
        "extraction_reasons",
        "cut_short",
        "usage",
        "prompts",
        "pages",
    }
)
"""Keys of a summary that the public toolkit does not have."""
NO_INFO: Mapping[str, Any] = {"no_info": "No information recorded"}


class Breakdown:
    """Tree with the verdicts of its leaves at the time of creation."""

    def __init__(self, root: VerificationNode, decisions: Decisions) -> None:
        self._root = root
        self._decisions = decisions
        self._missed = missed = missed_steps(root)
        self._unjudged_elsewhere = decisions.unjudged(except_in=root.walk())
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
            **_losses(self._decisions, self._unjudged_elsewhere),
            "cut_short": self._decisions.stop_reason,
            "usage": asdict(self._decisions.usage),
            "prompts": sorted(self._decisions.prompts),
        }

    @property
    def status(self) -> str:
        """``incomplete`` if a leaf is unknown, a claim not judged, an extraction failed, or the script stopped."""
        missing = any(view.low < view.high for view in self._views.values())
        return INCOMPLETE if missing or self._unjudged_elsewhere or not self._decisions.is_complete else COMPLETE

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
            if strict and view.verdict.outcome is Outcome.PASSED and not counts_strictly(view.verdict):
                return 0.0, 0.0
            return view.low, view.high

        if self._unjudged_elsewhere or not (self._decisions.is_complete or self._is_closed()):
            return OPEN  # with all values, or more time, the script could have built another tree
        return bounds(self._root, interval)

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


def with_defaults(result: Mapping[str, Any], decisions: Decisions) -> dict[str, Any]:
    """Return a script's result with our additional keys. Without the summary of an evaluator, they are computed here.

    The score is then open if a fault can have changed it. Other values of the script under these names are dropped.
    """
    known = float(result.get("final_score", 0.0))
    if isinstance(result.get("score"), Mapping) and result.get("status") in (COMPLETE, INCOMPLETE):
        return {"final_score": known, "score_strict": result["score"]} | dict(result)
    unjudged = decisions.unjudged()
    is_certain = decisions.is_complete and not unjudged
    score = asdict(bounded_score(known, known) if is_certain else OPEN)
    own = {"status": COMPLETE if is_certain else INCOMPLETE, "score": score, "score_strict": score}
    if not is_certain:
        own |= _losses(decisions, unjudged)
    return {"final_score": known} | {name: value for name, value in result.items() if name not in ADDED_KEYS} | own


def _losses(decisions: Decisions, unjudged: Sequence[Verdict]) -> dict[str, Any]:
    """Return what the script went on without: failed extractions, and claims whose verdicts the tree does not have."""
    reasons = [*decisions.extraction_reasons, *(verdict.reason for verdict in unjudged if verdict.reason is not None)]
    error = decisions.extraction_error
    if error is None and unjudged:
        error = f"a claim outside of the tree was not judged: {unjudged[0].reasoning}"
    return {"extraction_error": error, "extraction_reasons": [reason.value for reason in dict.fromkeys(reasons)]}
