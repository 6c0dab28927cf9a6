"""Evidence of a node: the claim that was verified there, and its judgement on each source. Pure functions.

A node without a verification has no evidence (None).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mind2web2.verification_tree import VerificationNode
from mind2web2.verify_options import InvalidCall, page_addresses
from rubrics.tree_json import check_json
from rubrics.verdict import CheckNote, SourceCheck, Verdict


def judged_evidence(claim: Any, sources: Any, verdict: Verdict) -> dict[str, Any]:
    """Return the evidence of a claim that was judged on ``sources`` as given by the script.

    An entry that is not an address gets a check without a page.
    """
    entries = source_texts(sources)
    checks = _in_order(entries, verdict.checks) if entries else verdict.checks
    return {**_evidence(claim, entries), "checks": [check_json(check) for check in checks]}


def skipped_evidence(claim: Any, sources: Any, blocker: str) -> dict[str, Any]:
    """Return the evidence of a claim that was not judged because of the leaf ``blocker``."""
    return {**_evidence(claim, source_texts(sources)), "skipped_because": blocker}


def invalid_evidence(claim: Any, sources: Any, error: InvalidCall) -> dict[str, Any]:
    """Return the evidence of a call that can never be judged."""
    return {**_evidence(claim, source_texts(sources)), "error": f"{error.kind.__name__}: {error}"}


def with_first_imperfect_step(evidence: dict[str, Any] | None, step: str) -> dict[str, Any] | None:
    """Return the evidence of a node that scoring has set to 0 because of ``step``; a closed gate takes precedence."""
    return None if evidence is None else {**evidence, "skipped_because": evidence.get("skipped_because", step)}


def log_checks(logger: Any, node: VerificationNode | None, evidence: Mapping[str, Any], status: str) -> None:
    """Log one record per check; one without page if the claim was not judged. ``status`` is the compatible one."""
    _log_checks(logger, None if node is None else node.id, evidence, status)


def log_result(logger: Any, result: Mapping[str, Any]) -> None:
    """Log the same records as ``log_checks`` for all nodes of a result, in the order of the tree."""
    nodes = [part["verification_tree"] for part in reversed(result.get("eval_breakdown") or ())]
    while nodes:
        node = nodes.pop()
        nodes += reversed(node.get("children") or ())
        if node.get("evidence") is not None:
            _log_checks(logger, node["id"], node["evidence"], node["status"])


def _log_checks(logger: Any, node_id: str | None, evidence: Mapping[str, Any], status: str) -> None:
    unjudged: dict[str, Any] = {"url": None, "votes": [], "passed": False, "reasoning": evidence.get("error")}
    for check in evidence["checks"] or [unjudged]:
        record = {name: check[name] for name in ("url", "votes", "passed", "reasoning")}
        record |= {"node_id": node_id, "claim": evidence["claim"], "status": status}
        logger.info("check %s: %s", status, evidence["claim"], extra=record)


def source_texts(sources: Any) -> list[str]:
    """Return the sources of a claim as a list of texts; an entry that is not a text is empty."""
    if isinstance(sources, str):
        return [sources]
    if not isinstance(sources, Sequence):
        return []
    return [entry if isinstance(entry, str) else "" for entry in sources]


def _evidence(claim: Any, sources: Sequence[str]) -> dict[str, Any]:
    return {"claim": str(claim), "sources": list(sources), "checks": []}


def _in_order(entries: Sequence[str], judged: Sequence[SourceCheck]) -> Iterator[SourceCheck]:
    """Yield the checks in the order of the entries. ``judged`` lacks cancelled sources and those without address."""
    pending = deque(judged)
    for entry in entries:
        if not page_addresses([entry]):
            yield SourceCheck(url=entry, passed=False, note=CheckNote.NO_PAGE)
        elif pending and pending[0].url == entry:
            yield pending.popleft()
