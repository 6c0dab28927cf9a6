"""Leaves and scores of a result as tests of task files compare them. Pure.

Leaves have a request, an outcome, and the extracted values. Scores of a correct and of an empty answer show wrong
scores, votes that disagree, and leaves that never fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cache.urls import canonical_key
from judges.analysis.overrides import JudgedNode, judged_leaves
from rubrics.tree_json import BAD_STATES, GOOD_STATES
from rubrics.verdict import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLeaf:
    """Leaf of one run. ``claim`` is None if code decided the leaf.

    ``sources`` are keys of pages; None for a claim about the answer alone.
    """

    key: str
    claim: str | None
    sources: tuple[str, ...] | None
    instruction: str | None
    state: str
    """The outcome, or whether a penalty ``applies`` or is ``avoided``."""
    reason: str | None
    desc: str = ""
    check: bool | None = None
    """Result of a check by code, also if the leaf was then skipped; None if unknown."""
    blocked_by: str | None = None
    """Id of the failed leaf or group because of which this leaf was skipped."""
    reasoning: str = field(default="", compare=False)
    """Of the judge; of a check, what it compared."""

    @property
    def question(self) -> tuple[object, ...]:
        """Return what the judge model is asked: claim, sources and instruction."""
        return self.claim, None if self.sources is None else frozenset(self.sources), self.instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRun:
    """One run: its leaves by key, and the whole result."""

    leaves: Mapping[str, ObservedLeaf]
    result: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def passed(self) -> tuple[ObservedLeaf, ...]:
        """Return the leaves whose claim passed. Only these can be tested."""
        return tuple(leaf for leaf in self.leaves.values() if leaf.state == Outcome.PASSED and leaf.claim is not None)

    @property
    def not_judged(self) -> tuple[str, ...]:
        return tuple(leaf.key for leaf in self.leaves.values() if leaf.state == Outcome.NOT_JUDGED)


def observed_run(result: Mapping[str, Any]) -> ObservedRun:
    """Read a run from the JSON of a result, or from a ``get_summary()``."""
    return ObservedRun(leaves={key: _leaf(key, node) for key, node in judged_leaves(result).items()}, result=result)


def _leaf(key: str, node: JudgedNode) -> ObservedLeaf:
    data = node.data
    sources = data.get("sources")
    check = data.get("check")
    if check is None and data.get("claim") is None and node.outcome in (Outcome.PASSED, Outcome.FAILED):
        check = node.outcome is Outcome.PASSED
    return ObservedLeaf(
        key=key,
        claim=data.get("claim"),
        sources=None if sources is None else tuple(canonical_key(str(url)) for url in sources),
        instruction=data.get("instruction"),
        state=node.state,
        reason=data.get("reason"),
        desc=str(data.get("desc") or ""),
        reasoning=str(data.get("reasoning") or ""),
        check=check,
        blocked_by=data.get("blocked_by"),
    )


EMPTY_ANSWER: Final = ""
_CLOSE: Final = 1e-9


def scores_json(
    gold: ObservedRun,
    empty: ObservedRun | str,
    estimate: Mapping[str, Any] | None,
    *,
    fields: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the report on both scores as JSON, with ``findings`` that name the leaves.

    Args:
        gold: the run on the correct answer, which must score 1.
        empty: the run on an empty answer, which must score 0; the error if the judge raised.
        estimate: estimated cost with a model that is not free of cost; None if the run itself has the cost.
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
    return {**report, "findings": list(_findings(gold, empty, frozenset(fields["unmoved"])))}


def not_judged(scores: Mapping[str, Any]) -> bool:
    """Return whether a fault leaves one of the two scores open."""
    runs = (scores["gold"], scores["empty"])
    bounds = [run["score"] for run in runs if run.get("score") and run["score"]["low"] is not None]
    return any(score["high"] > score["low"] + _CLOSE for score in bounds)


def _findings(gold: ObservedRun, empty: ObservedRun | str, unmoved: frozenset[str]) -> Iterable[dict[str, Any]]:
    high = _score(gold)["high"]
    if high is None or high < 1 - _CLOSE:
        found = (
            "has no score, because nothing in the rubric applies to it" if high is None else f"scores {high:.3g}, not 1"
        )
        yield {
            "code": "gold_fails",
            "message": f"The correct answer {found}.",
            "fix": "Correct the claims that fail, the answer (--answer), or try another judge model (--model).",
            "leaves": [_leaf_json(leaf) for leaf in gold.leaves.values() if leaf.state in _WRONG],
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
    settled = {key for key, leaf in empty.leaves.items() if leaf.state != Outcome.FAILED}
    never = [leaf for leaf in gold.passed if leaf.key in unmoved & settled]
    if never:
        yield {
            "code": "never_flips",
            "message": "No edit of a value or citation changes these claims.",
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
        "leaves": [_leaf_json(leaf) for leaf in empty.leaves.values() if leaf.state == Outcome.PASSED],
    }


_WRONG = BAD_STATES | {Outcome.UNDECIDED, Outcome.NOT_JUDGED}


def _score(run: ObservedRun) -> Mapping[str, float | None]:
    score: Mapping[str, float | None] = run.result["score"]
    return score


def _run_json(run: ObservedRun) -> dict[str, Any]:
    return {
        "score": _score(run),
        "passed": sum(leaf.state in GOOD_STATES for leaf in run.leaves.values()),
        "not_judged": [_leaf_json(run.leaves[key]) for key in run.not_judged],
    }


def _leaf_json(leaf: ObservedLeaf) -> dict[str, Any]:
    return {
        "leaf": leaf.key,
        "claim": leaf.claim,
        "description": leaf.desc,
        "outcome": leaf.state,
        "reason": leaf.reason,
        "reasoning": leaf.reasoning,
    }


def _split(result: Mapping[str, Any]) -> Iterable[str]:
    """Yield the keys of the leaves whose votes on one source disagree. Votes lost to a fault do not count."""
    for key, node in judged_leaves(result).items():
        given = {vote.get("result") for vote in node.data.get("votes") or () if vote.get("fault") is None}
        checks = (node.data.get("evidence") or {}).get("checks") or ()
        if {True, False} <= given and (not checks or any(len(set(check.get("votes") or ())) > 1 for check in checks)):
            yield key
