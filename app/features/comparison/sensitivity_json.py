"""JSON values of the sensitivity analysis of ``judges.analysis.sensitivity``. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from app.agent_summary import interval_json
from app.features.comparison.paired_comparison import ComparisonSide
from judges.analysis.overrides import JudgedNode, judged_tree
from judges.analysis.sensitivity.answers import FACTOR
from judges.analysis.sensitivity.consistency import Consistency, consistency
from judges.analysis.sensitivity.inversions import invert_leaves
from judges.analysis.sensitivity.robustness import RandomChanges, ScoreDifference, SingleChanges, robustness
from judges.result import score_json

MAX_TURNS = 50
MAX_FLAKY = 200
SCHEME = f"each weight times a factor from 1/{FACTOR:g} to {FACTOR:g}, log-uniform, the same for a node in all answers"


def inversions_json(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the leaves of a result by the change of its score if the outcome of the leaf were the opposite."""
    report = invert_leaves(result)
    names = {"result_id": result.get("id"), "task_id": result.get("task_id"), "answer_name": result.get("answer_name")}
    if report is None:
        return {**names, "score": None, "flips": [], "without_effect": 0, "left_out": 0}
    return {
        **names,
        "score": score_json(report.score),
        "flips": [
            {
                "leaf": inversion.key,
                "desc": inversion.desc,
                "outcome": inversion.outcome.value,
                "to": inversion.to.value,
                "score": score_json(inversion.score),
                "change": {"least": inversion.low_change, "greatest": inversion.high_change},
                "votes": {"yes": inversion.yes, "no": inversion.no},
            }
            for inversion in report.inversions
        ],
        "without_effect": report.without_effect,
        "left_out": report.left_out,
    }


def order_json(a: ComparisonSide, b: ComparisonSide) -> dict[str, Any]:
    """Return whether the leading side keeps its lead. All other fields are absent if the sides share no task."""
    report = robustness(_trees(a), _trees(b))
    names = {"a": a.name, "b": b.name}
    if report is None:
        return {**names, "tasks": 0, "ahead": None, "difference": None}
    return {
        **names,
        "tasks": report.tasks,
        "ahead": report.difference.ahead,
        "difference": _difference(report.difference),
        "leave_one_leaf_out": _single_changes(report.leave_one_leaf_out),
        "votes": {
            "split_leaves": report.split_leaves,
            "minority_wins": _single_changes(report.minority_wins),
            "minority_wins_everywhere": _difference(report.minority_wins_everywhere),
            "redrawn": _random_changes(report.votes_redrawn),
        },
        "weights": {
            "equal": _difference(report.equal_weights),
            "redrawn": {"scheme": SCHEME, **_random_changes(report.weights_redrawn)},
        },
    }


def consistency_json(results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the self-consistency of judges."""
    report: Consistency = consistency(results)
    return {
        "results": report.results,
        "votes": [asdict(votes) for votes in report.votes],
        "judged_again": report.again,
        "flaky_leaves": len(report.flaky),
        "flaky_share": interval_json(report.flaky_share),
        "flaky": [
            {
                "task_id": leaf.task_id,
                "leaf": leaf.leaf,
                "model": leaf.model,
                "answer_sha256": leaf.answer_sha256,
                "passed": leaf.passed,
                "judged": len(leaf.results),
                "results": [{"result_id": name, "outcome": outcome.value} for name, outcome in leaf.results],
            }
            for leaf in report.flaky[:MAX_FLAKY]
        ],
    }


def _trees(side: ComparisonSide) -> dict[str, list[JudgedNode | None]]:
    grouped: dict[str, list[JudgedNode | None]] = {}
    for outcome in side.outcomes:
        root = None if outcome.result is None else judged_tree(outcome.result)
        grouped.setdefault(outcome.task_id, []).append(root)
    return grouped


def _difference(difference: ScoreDifference) -> dict[str, Any]:
    return {"low": difference.low, "high": difference.high, "ahead": difference.ahead}


def _single_changes(changes: SingleChanges) -> dict[str, Any]:
    return {
        **asdict(changes.tally),
        "turns": [
            {"task_id": turn.task_id, "leaf": turn.leaf, "difference": _difference(turn.difference)}
            for turn in changes.turns[:MAX_TURNS]
        ],
    }


def _random_changes(changes: RandomChanges) -> dict[str, Any]:
    return {**asdict(changes.tally), "seed": changes.seed, "low": changes.low, "high": changes.high}
