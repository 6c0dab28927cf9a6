"""JSON format of a rubric.

The tree has the shape and field order of the public toolkit (id, desc, critical, score, status, strategy, children),
followed by our fields. Scores, statuses and ``grounding`` are derived: they are written for readers and recomputed when
a result is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rubrics.node import RubricNode
from rubrics.rubric import Rubric
from rubrics.scoring import NodeScore, compatible_score, score_nodes
from rubrics.verdict import Claim, MemberVerdict, Outcome, SourceCheck, Verdict, Vote


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
        "score": score,
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
    """Return the additional fields of a leaf: its claim and its verdict. ``jury`` is only present if a jury decided.

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
    if verdict.members:
        fields["jury"] = [_member_json(member) for member in verdict.members]
    return fields


def _member_json(member: MemberVerdict) -> dict[str, Any]:
    return {**asdict(member), "outcome": member.outcome.value, "reason": member.reason and member.reason.value}


def _vote_json(vote: Vote) -> dict[str, Any]:
    fault = vote.fault and vote.fault.value
    return {"result": vote.result, "model": vote.model, "cached": vote.cached, "fault": fault}
