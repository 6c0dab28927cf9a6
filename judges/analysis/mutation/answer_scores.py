"""Scores of a correct and of an empty answer: wrong scores, votes that disagree, leaves that never fail. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from judges.analysis.mutation.leaves import ObservedLeaf, ObservedRun
from judges.analysis.overrides import judged_leaves
from rubrics.verdict import Outcome

EMPTY_ANSWER: Final = ""
_CLOSE: Final = 1e-9


def scores_json(
    gold: ObservedRun,
    empty: ObservedRun | str,
    estimate: Mapping[str, Any] | None,
    *,
    changes: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the report on both scores as JSON, with ``findings`` that name the leaves.

    Args:
        gold: the run on the correct answer, which must score 1.
        empty: the run on an empty answer, which must score 0; the error if the judge raised.
        estimate: estimated cost with a model that is not free of cost; None if the run itself has the cost.
        changes: report of the mutation test (``mutation_test.report_json``).
        fields: report of the field test (``findings.FieldReport.json``).
    """
    report = {
        "gold": {
            **_run_json(gold),
            "split_votes": [_leaf_json(gold.leaves[key]) for key in _split(gold.result)],
            "pages": len(gold.result.get("pages") or ()),
            "usage": gold.result.get("usage"),
            "estimate": estimate,
        },
        "empty": {"error": empty} if isinstance(empty, str) else _run_json(empty),
    }
    return {**report, "findings": list(_findings(gold, empty, _untouched(changes, fields)))}


def not_judged(scores: Mapping[str, Any]) -> bool:
    """Return whether a fault leaves one of the two scores open."""
    runs = (scores["gold"], scores["empty"])
    bounds = [run["score"] for run in runs if run.get("score") and run["score"]["low"] is not None]
    return any(score["high"] > score["low"] + _CLOSE for score in bounds)


def _findings(gold: ObservedRun, empty: ObservedRun | str, untouched: frozenset[str]) -> Iterable[dict[str, Any]]:
    high = _score(gold)["high"]
    if high is None or high < 1 - _CLOSE:
        found = (
            "has no score, because nothing in the rubric applies to it" if high is None else f"scores {high:.3g}, not 1"
        )
        yield {
            "code": "gold_fails",
            "message": f"The correct answer {found}.",
            "fix": "Correct the claims that fail, the answer (--answer), or try another judge model (--model).",
            "leaves": [_leaf_json(leaf) for leaf in gold.leaves.values() if leaf.outcome in _WRONG],
        }
    if isinstance(empty, str):
        yield {
            "code": "empty_answer_raises",
            "message": f"The judge fails on an empty answer: {empty}",
            "fix": "Allow for values that the answer does not give.",
            "leaves": [],
        }
        return
    if (scored := empty_answer_finding(empty)) is not None:
        yield scored
    never = [leaf for leaf in gold.passed if leaf.key in untouched and not _fails(empty.leaves.get(leaf.key))]
    if never:
        yield {
            "code": "never_flips",
            "message": "No change of the answer and no edit of a value makes these claims fail.",
            "fix": "Put the extracted value into the claim, or give the reason in a comment `# untested: reason`.",
            "leaves": [_leaf_json(leaf) for leaf in never],
        }


def empty_answer_finding(empty: ObservedRun) -> dict[str, Any] | None:
    """Return the finding that an empty answer scores more than 0, with the leaves that pass; None if it scores 0.

    An answer without a score counts in no mean, so an agent could gain by saying nothing.
    """
    low = _score(empty)["low"]
    if low is None:
        return {
            "code": "empty_answer_scores",
            "message": "An empty answer has no score and counts in no mean, because nothing applies to it.",
            "fix": "Add a leaf without `applies_if`.",
            "leaves": [],
        }
    if low <= _CLOSE:
        return None
    return {
        "code": "empty_answer_scores",
        "message": f"An empty answer scores {low:.3g}, not 0.",
        "fix": "Put an extracted value into each claim and check, or add a critical check that the value is given.",
        "leaves": [_leaf_json(leaf) for leaf in empty.leaves.values() if leaf.outcome is Outcome.PASSED],
    }


def _untouched(changes: Mapping[str, Any], fields: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys of the claims that passed and that neither an edit nor a mutation changed."""
    moved = {key for change in changes["mutations"] for key in change["also_moved"]}
    return (frozenset(changes["leaves"]["never_tested"]) & frozenset(fields["unmoved"])) - moved


_WRONG = (Outcome.FAILED, Outcome.UNDECIDED, Outcome.NOT_JUDGED)


def _fails(leaf: ObservedLeaf | None) -> bool:
    return leaf is None or leaf.outcome is Outcome.FAILED


def _score(run: ObservedRun) -> Mapping[str, float | None]:
    score: Mapping[str, float | None] = run.result["score"]
    return score


def _run_json(run: ObservedRun) -> dict[str, Any]:
    return {
        "score": _score(run),
        "passed": sum(leaf.outcome is Outcome.PASSED for leaf in run.leaves.values()),
        "not_judged": [_leaf_json(run.leaves[key]) for key in run.not_judged],
    }


def _leaf_json(leaf: ObservedLeaf) -> dict[str, Any]:
    return {
        "leaf": leaf.key,
        "claim": leaf.claim,
        "description": leaf.desc,
        "outcome": leaf.outcome.value,
        "reason": leaf.reason,
    }


def _split(result: Mapping[str, Any]) -> Iterable[str]:
    """Yield the keys of the leaves whose votes on one source disagree. Votes lost to a fault do not count."""
    for key, node in judged_leaves(result).items():
        given = {vote.get("result") for vote in node.data.get("votes") or () if vote.get("fault") is None}
        checks = (node.data.get("evidence") or {}).get("checks") or ()
        if {True, False} <= given and (not checks or any(len(set(check.get("votes") or ())) > 1 for check in checks)):
            yield key
