"""JSON format of a rubric in results, and reading of stored results.

The tree has the shape and field order of the public toolkit (id, desc, critical, score, status, strategy, children),
followed by our fields. Scores, statuses and ``grounding`` are derived: they are written for readers and recomputed when
a result is replayed.

Schema version 1 had the script and the parameters of requests under ``judge``, and the digests of a leaf's evidence
under ``evidence``. Stored results may come from anywhere, so nothing about their shape is assumed.

"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from rubrics.rubric import Rubric
from rubrics.scoring import NodeScore, compatible_score, score_nodes
from rubrics.tree import RubricNode
from rubrics.verdict import Claim, MemberVerdict, Outcome, SourceCheck, Verdict, Vote

SUPPLIED: Final = "supplied"
"""``provenance`` of a leaf whose verdict rests on a page that the agent supplied."""
APPLIES: Final = "applies"
"""State of a penalty that is subtracted."""
AVOIDED: Final = "avoided"
"""State of a penalty that is not subtracted."""
GOOD_STATES: Final = frozenset({Outcome.PASSED.value, AVOIDED})
BAD_STATES: Final = frozenset({Outcome.FAILED.value, APPLIES})
_PENALTY_STATES: Final[Mapping[str, str]] = {"passed": APPLIES, "partial": APPLIES, "failed": AVOIDED}
_OUTCOMES: Final[Mapping[object, Outcome]] = {outcome.value: outcome for outcome in Outcome}


def tree_json(rubric: Rubric) -> dict[str, Any]:
    """Return the tree with compatible scores and statuses, and with the claim and verdict of each leaf."""
    settled = score_nodes(rubric.root, lambda leaf: compatible_score(leaf.verdict))
    return _node_json(rubric.root, settled)


def _node_json(node: RubricNode, settled: Mapping[int, NodeScore]) -> dict[str, Any]:
    score, status = settled[id(node)]
    fields: dict[str, Any] = {
        "id": node.id,
        "desc": node.desc,
        "critical": node.critical,
        "score": max(0.0, score),
        "status": status.value,
        "strategy": node.strategy.value,
        "children": [_node_json(child, settled) for child in node.children],
        "weight": node.weight,
        "evidence": None if node.children else evidence_json(node.claim, node.verdict),
        "requires": list(node.requires),
    }
    if not node.children:
        fields |= {"check": node.check, **leaf_json(node.claim, node.verdict)}
    return fields


def evidence_json(claim: Claim | None, verdict: Verdict | None) -> dict[str, Any] | None:
    """Return the claim of a node and its judgement on each source, as in the public toolkit; None without a verdict.

    ``skipped_because`` is only present if a gate was closed, and has the id of the node that closed it.
    """
    if claim is None or verdict is None:
        return None
    checks = [check_json(check) for check in verdict.checks]
    evidence: dict[str, Any] = {"claim": claim.text, "sources": list(claim.sources or ()), "checks": checks}
    return evidence if verdict.blocked_by is None else {**evidence, "skipped_because": verdict.blocked_by}


def check_json(check: SourceCheck) -> dict[str, Any]:
    """Return the judgement on one source. ``note`` is only present if there is one."""
    fields: dict[str, Any] = {
        "url": check.url,
        "passed": check.passed,
        "votes": list(check.votes),
        "reasoning": check.reasoning,
    }
    return fields if check.note is None else {**fields, "note": check.note.value}


def leaf_json(claim: Claim | None, verdict: Verdict | None) -> dict[str, Any]:
    """Return the additional fields of a leaf: its claim and its verdict.

    ``jury`` is only present if a jury decided, ``penalized`` if the leaf counts -1, ``provenance`` if its evidence was
    supplied by the agent.

    ``sources`` is null for a claim about the answer alone and for a leaf decided by code.
    """
    verdict = verdict or Verdict(outcome=Outcome.UNDECIDED)
    fields: dict[str, Any] = {
        "outcome": verdict.outcome.value,
        "reason": verdict.reason and verdict.reason.value,
        "reasoning": verdict.reasoning,
        "sources": None if claim is None or claim.sources is None else list(claim.sources),
        "votes": [_vote_json(vote) for vote in verdict.votes],
        "quotes": [{**asdict(quote), "origin": quote.origin.value} for quote in verdict.quotes],
        "blocked_by": verdict.blocked_by,
        "claim": claim and claim.text,
        "instruction": claim and claim.instruction,
        "page_digests": list(verdict.evidence),
        "prompt": verdict.prompt,
        "model": verdict.model,
        "usage": asdict(verdict.usage),
        "grounded": verdict.grounded,
        "grounding": verdict.grounding and verdict.grounding.value,
        "signals": list(verdict.signals),
    }
    if verdict.penalized:
        fields["penalized"] = True
    if verdict.supplied:
        fields["provenance"] = SUPPLIED
    if verdict.members:
        fields["jury"] = [_member_json(member) for member in verdict.members]
    return fields


def _member_json(member: MemberVerdict) -> dict[str, Any]:
    return {**asdict(member), "outcome": member.outcome.value, "reason": member.reason and member.reason.value}


def _vote_json(vote: Vote) -> dict[str, Any]:
    fault = vote.fault and vote.fault.value
    return {"result": vote.result, "model": vote.model, "cached": vote.cached, "fault": fault}


def script_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``name``, ``version``, ``kind`` and ``sha256`` of the task script; a missing value is left out.

    Results of the public toolkit have only the hash.
    """
    script = _mapping(result.get("script"))
    if script:
        return script
    judge = _mapping(result.get("judge"))
    known = {name: judge[name] for name in ("name", "version", "kind") if name in judge}
    sha256 = judge.get("script_sha256", result.get("eval_script_sha256"))
    return known if sha256 is None else {**known, "sha256": sha256}


def script_sha256_of(result: Mapping[str, Any]) -> Any:
    """Return the SHA-256 (hex) of the task script; None if the result does not contain it."""
    return script_of(result).get("sha256")


def parameters_of(result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the parameters of model requests by role; None if the result does not contain them."""
    parameters = result.get("parameters", _mapping(result.get("judge")).get("parameters"))
    return parameters if isinstance(parameters, Mapping) else None


def members_of(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the members of the jury that judged a result, with their parameters; empty if one model judged it."""
    members = _mapping(_mapping(result.get("judge")).get("jury")).get("members")
    return tuple(map(_mapping, members)) if isinstance(members, list | tuple) else ()


def counts_strictly(leaf: Mapping[str, Any]) -> bool:
    """Return whether a leaf counts in the strict score if it passed. See ``rubrics.scoring.counts_strictly``."""
    return leaf.get("grounded") is not False and leaf.get("provenance") != SUPPLIED


def evidence_counts(result: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of leaves that were judged on captured pages, and on supplied ones."""
    on_pages = [leaf for leaf in leaves_of(result) if page_digests_of(leaf)]
    supplied = sum(leaf.get("provenance") == SUPPLIED for leaf in on_pages)
    return {"captured": len(on_pages) - supplied, SUPPLIED: supplied}


def page_digests_of(leaf: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the SHA-256 digests (hex) of the page content that a leaf was judged on."""
    digests = leaf.get("page_digests", leaf.get("evidence"))
    return tuple(map(str, digests)) if isinstance(digests, list | tuple) else ()


def may_lack_parts(result: Mapping[str, Any]) -> bool:
    """Return whether a fault may have kept the judge from declaring parts of the tree. The score is then open."""
    return result.get("extraction_error") is not None or result.get("cut_short") is not None


def nodes_below(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a node and its descendants, parents before children. Trees can be deeper than the recursion limit."""
    nodes = [node]
    while nodes:
        current = nodes.pop()
        yield current
        nodes += reversed(current.get("children") or ())


def leaves_of(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the leaves of a result's trees, in order."""
    for part in result.get("eval_breakdown") or ():
        yield from (node for node in nodes_below(part["verification_tree"]) if not node.get("children"))


def leaf_states(result: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the leaves of a result's trees, in order, with their states (``shown_state`` of their outcomes)."""
    trees = [part["verification_tree"] for part in result.get("eval_breakdown") or ()]
    nodes = [(tree, False) for tree in reversed(trees)]
    while nodes:
        node, in_penalty = nodes.pop()
        in_penalty = in_penalty or is_penalty(node)
        children = node.get("children")
        if children:
            nodes += ((child, in_penalty) for child in reversed(children))
        else:
            yield node, shown_state(outcome_of(node).value, in_penalty=in_penalty)


def is_penalty(node: Mapping[str, Any]) -> bool:
    """Return whether a node is a penalty. All nodes below it are parts of this penalty."""
    weight = node.get("weight")
    return isinstance(weight, int | float) and weight < 0


def outcome_of(leaf: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a leaf. Results of the public toolkit have only a status."""
    return _OUTCOMES.get(leaf.get("outcome")) or _OUTCOMES.get(leaf.get("status"), Outcome.UNDECIDED)


def shown_state(state: str, *, in_penalty: bool) -> str:
    """Return the state that readers see for an outcome or status: a penalty ``applies`` or is ``avoided``.

    >>> shown_state("failed", in_penalty=True)
    'avoided'
    """
    return _PENALTY_STATES.get(state, state) if in_penalty else state


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
