"""JSON format of a rubric: writing and reading.

The tree has the shape and field order of the public toolkit (id, desc, critical, score, status, strategy, children),
followed by our fields. Scores, statuses and ``grounding`` are derived: they are written for readers and recomputed when
a document is read. Change ``SCHEMA_VERSION`` together with any field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from rubrics.errors import RubricError, SchemaError
from rubrics.node import RubricNode, Status, Strategy
from rubrics.rubric import ROOT_ID, Rubric
from rubrics.scoring import NodeScore, compatible_score, score_nodes
from rubrics.verdict import Claim, Outcome, Quote, QuoteOrigin, Reason, SourceCheck, Usage, Verdict, Vote

SCHEMA_VERSION = 2


def rubric_json(rubric: Rubric) -> dict[str, Any]:
    """Return the rubric with its verdicts as JSON values."""
    return {"schema_version": SCHEMA_VERSION, "task_id": rubric.task_id, "tree": tree_json(rubric)}


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
    """Return the additional fields of a leaf: its claim and its verdict.

    ``sources`` is null for a claim about the answer alone and for a leaf decided by code.
    """
    verdict = verdict or Verdict(outcome=Outcome.UNDECIDED)
    return {
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


def _vote_json(vote: Vote) -> dict[str, Any]:
    fault = vote.fault and vote.fault.value
    return {"result": vote.result, "model": vote.model, "cached": vote.cached, "fault": fault}


class _Document(BaseModel):
    """Base model that rejects unknown fields, because a misspelled ``critical`` would silently change the score."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class _EvidenceDocument(_Document):
    claim: str
    sources: tuple[str, ...]
    checks: tuple[SourceCheck, ...]
    skipped_because: str | None = None


class _NodeDocument(_Document):
    """One node of a document. On a group, the fields of a leaf have their defaults."""

    id: str
    desc: str
    critical: bool
    score: float
    status: Status
    strategy: Strategy
    children: list[_NodeDocument]
    weight: float
    evidence: _EvidenceDocument | None
    requires: tuple[str, ...]
    check: bool | None = None
    outcome: Outcome = Outcome.UNDECIDED
    reason: Reason | None = None
    reasoning: str = ""
    sources: tuple[str, ...] | None = None
    votes: tuple[Vote, ...] = ()
    quotes: tuple[Quote, ...] = ()
    blocked_by: str | None = None
    claim: str | None = None
    instruction: str | None = None
    page_digests: tuple[str, ...] = ()
    prompt: str | None = None
    model: str | None = None
    usage: Usage = Usage()
    grounded: bool | None = None
    grounding: QuoteOrigin | None = None
    signals: tuple[str, ...] = ()

    def to_node(self) -> RubricNode:
        """Return the node without children and ``requires``, which the caller adds."""
        return RubricNode(
            id=self.id,
            desc=self.desc,
            critical=self.critical,
            weight=self.weight,
            strategy=self.strategy,
            claim=None
            if self.claim is None
            else Claim(text=self.claim, sources=self.sources, instruction=self.instruction),
            check=self.check,
            verdict=self._verdict(),
        )

    def _verdict(self) -> Verdict | None:
        verdict = Verdict(
            outcome=self.outcome,
            reason=self.reason,
            reasoning=self.reasoning,
            votes=self.votes,
            quotes=self.quotes,
            evidence=self.page_digests,
            checks=() if self.evidence is None else self.evidence.checks,
            prompt=self.prompt,
            model=self.model,
            usage=self.usage,
            blocked_by=self.blocked_by,
            grounded=self.grounded,
            signals=self.signals,
        )
        return None if verdict == Verdict(outcome=Outcome.UNDECIDED) else verdict


class _RubricDocument(_Document):
    schema_version: Literal[2]
    task_id: str
    tree: _NodeDocument


def rubric_from_json(document: object) -> Rubric:
    """Parse a document written by ``rubric_json``.

    Raises:
        SchemaError: The document has another version or shape, or its tree breaks a rule of ``Rubric``.
    """
    try:
        read = _RubricDocument.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise SchemaError(".".join(str(part) for part in first["loc"]), first["msg"]) from error
    top = read.tree
    if top.id != ROOT_ID or top.critical or top.weight != 1.0:
        raise SchemaError("tree", f"the root must have the id {ROOT_ID!r}, weight 1 and not be critical")
    rubric = Rubric(read.task_id, top.desc, top.strategy)
    rubric.root.verdict = top.to_node().verdict
    try:
        _fill(rubric, rubric.root, top.children)
        for each in _flat(top):
            rubric.require(rubric.find(each.id), *each.requires)
    except RubricError as error:
        raise SchemaError("tree", str(error)) from error
    return rubric


def _fill(rubric: Rubric, parent: RubricNode, documents: list[_NodeDocument]) -> None:
    for document in documents:
        _fill(rubric, rubric.add(parent, document.to_node()), document.children)


def _flat(document: _NodeDocument) -> list[_NodeDocument]:
    return [document, *(each for child in document.children for each in _flat(child))]
