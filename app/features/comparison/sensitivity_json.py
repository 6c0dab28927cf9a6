"""JSON values of the sensitivity analysis of ``judges.analysis.sensitivity``. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from app.features.comparison.figures import interval_json
from app.features.comparison.paired_comparison import ComparisonSide
from judges.analysis.overrides import JudgedNode, judged_tree
from judges.analysis.sensitivity.answers import FACTOR
from judges.analysis.sensitivity.consistency import Consistency, consistency
from judges.analysis.sensitivity.flips import flips
from judges.analysis.sensitivity.robustness import RandomChanges, ScoreDifference, SingleChanges, robustness
from judges.result import score_json

MAX_TURNS = 50
MAX_FLAKY = 200
SCHEME = f"each weight times a factor from 1/{FACTOR:g} to {FACTOR:g}, log-uniform, the same for a node in all answers"


def flips_json(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the leaves of a result by the change of its score if the leaf were flipped."""
    found = flips(result)
    names = {"result_id": result.get("id"), "task_id": result.get("task_id"), "answer_name": result.get("answer_name")}
    if found is None:
        return {**names, "score": None, "flips": [], "without_effect": 0, "left_out": 0}
    return {
        **names,
        "score": score_json(found.score),
        "flips": [
            {
                "leaf": flip.key,
                "desc": flip.desc,
                "outcome": flip.outcome.value,
                "to": flip.to.value,
                "score": score_json(flip.score),
                "change": {"least": flip.least, "greatest": flip.greatest},
                "votes": {"yes": flip.yes, "no": flip.no},
            }
            for flip in found.flips
        ],
        "without_effect": found.without_effect,
        "left_out": found.left_out,
    }


def order_json(a: ComparisonSide, b: ComparisonSide) -> dict[str, Any]:
    """Return whether the leading side keeps its lead. All other fields are absent if the sides share no task."""
    found = robustness(_trees(a), _trees(b))
    names = {"a": a.name, "b": b.name}
    if found is None:
        return {**names, "tasks": 0, "ahead": None, "difference": None}
    return {
        **names,
        "tasks": found.tasks,
        "ahead": found.difference.ahead,
        "difference": _difference(found.difference),
        "leave_one_leaf_out": _single_changes(found.leave_one_leaf_out),
        "votes": {
            "split_leaves": found.split_leaves,
            "minority_wins": _single_changes(found.minority_wins),
            "minority_wins_everywhere": _difference(found.minority_wins_everywhere),
            "redrawn": _random_changes(found.votes_redrawn),
        },
        "weights": {
            "equal": _difference(found.equal_weights),
            "redrawn": {"scheme": SCHEME, **_random_changes(found.weights_redrawn)},
        },
    }


def consistency_json(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the self-consistency of judges."""
    found: Consistency = consistency(results)
    return {
        "results": found.results,
        "votes": [asdict(one) for one in found.votes],
        "judged_again": found.again,
        "flaky_leaves": len(found.flaky),
        "flaky_share": interval_json(found.flaky_share),
        "flaky": [
            {
                "task_id": one.task_id,
                "leaf": one.leaf,
                "model": one.model,
                "answer_sha256": one.answer_sha256,
                "passed": one.passed,
                "judged": len(one.results),
                "results": [{"result_id": name, "outcome": outcome.value} for name, outcome in one.results],
            }
            for one in found.flaky[:MAX_FLAKY]
        ],
    }


def _trees(side: ComparisonSide) -> dict[str, list[JudgedNode | None]]:
    found: dict[str, list[JudgedNode | None]] = {}
    for outcome in side.outcomes:
        root = None if outcome.result is None else judged_tree(outcome.result)
        found.setdefault(outcome.task_id, []).append(root)
    return found


def _difference(found: ScoreDifference) -> dict[str, Any]:
    return {"low": found.low, "high": found.high, "ahead": found.ahead}


def _single_changes(found: SingleChanges) -> dict[str, Any]:
    return {
        **asdict(found.tally),
        "turns": [
            {"task_id": turn.task_id, "leaf": turn.leaf, "difference": _difference(turn.difference)}
            for turn in found.turns[:MAX_TURNS]
        ],
    }


def _random_changes(found: RandomChanges) -> dict[str, Any]:
    return {**asdict(found.tally), "seed": found.seed, "low": found.low, "high": found.high}
