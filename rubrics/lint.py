"""Rubric linter: finds parts of a rubric that can be scored but are probably mistakes.

Findings are advice and never stop a rubric from being used. ``Rubric.add`` rejects what cannot be scored at all.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from rubrics.gating import wait_cycle
from rubrics.rubric import Rubric, critical_penalty
from rubrics.tree import RubricNode


class LintRule(StrEnum):
    """Rules of the linter. Values are stable and appear in JSON output."""

    DUPLICATE_TEXT = "duplicate_text"
    """The same claim about the same sources twice, or two siblings with the same description."""
    BAD_WEIGHT = "bad_weight"
    """A weight that is zero or not finite; such a tree cannot be scored."""
    CRITICAL_PENALTY = "critical_penalty"
    """A node with a negative weight that is critical. Gates and penalties do not combine."""
    ONLY_PENALTIES = "only_penalties"
    """A group with penalties and nothing that they could be subtracted from. It always scores 0."""
    POINTLESS_WEIGHT = "pointless_weight"
    """A weight without effect: on a critical node, or equal to the weight of every other non-critical sibling."""
    ONLY_CRITICAL = "only_critical"
    """A group whose children are all critical, so it gives no partial credit. Those of a critical group must be."""
    NO_CHECK = "no_check"
    """A leaf with neither a claim nor a check. It always counts 0."""
    COMPOUND_CLAIM = "compound_claim"
    """A claim that makes two statements. A verdict cannot be positive for one half only."""
    VAGUE_CLAIM = "vague_claim"
    """A claim about quality without a criterion, such as "is comprehensive". Two judges may disagree on it."""
    SINGLE_CHILD = "single_child"
    """A group below the root with a single child, so one of the two levels is redundant."""
    CYCLE = "cycle"
    """Leaves that wait for each other and are never judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One finding: the rule, the node it is about, and the problem with its fix."""

    code: LintRule
    node_id: str
    message: str


def lint(rubric: Rubric) -> list[LintFinding]:
    """Return the findings in the order of the rubric's nodes, cycles last."""
    findings: list[LintFinding] = []
    first_uses: dict[Hashable, str] = {}
    for node in rubric.walk():
        if node.children:
            findings += _sibling_weights(node)
            findings += _duplicate_siblings(node)
            findings += _shape(rubric, node)
        else:
            findings += _leaf(node, first_uses)
    cycle = wait_cycle(rubric)
    if cycle:
        findings.append(
            LintFinding(
                code=LintRule.CYCLE,
                node_id=cycle[0],
                message=f"these leaves wait for each other: {' > '.join(cycle)}; remove one prerequisite",
            )
        )
    return findings


def _shape(rubric: Rubric, group: RubricNode) -> Iterator[LintFinding]:
    if len(group.children) == 1:
        if group is not rubric.root:
            message = f"has a single child, {group.children[0].id!r}; declare the child one level up, or add a sibling"
            yield LintFinding(code=LintRule.SINGLE_CHILD, node_id=group.id, message=message)
    elif not group.critical and all(child.critical for child in group.children):
        message = "every child is critical, so one failure gives 0; make some non-critical to allow partial credit"
        yield LintFinding(code=LintRule.ONLY_CRITICAL, node_id=group.id, message=message)


def _sibling_weights(group: RubricNode) -> Iterator[LintFinding]:
    for child in group.children:
        if not math.isfinite(child.weight) or child.weight == 0:
            message = f"weight {child.weight:g} cannot be averaged; use a finite number other than 0"
            yield LintFinding(code=LintRule.BAD_WEIGHT, node_id=child.id, message=message)
        elif child.critical and child.weight < 0:
            message = critical_penalty(child.id, child.weight)
            yield LintFinding(code=LintRule.CRITICAL_PENALTY, node_id=child.id, message=message)
        elif child.critical and child.weight != 1.0:
            message = f"weight {child.weight:g} has no effect on a critical node; remove `weight` or `critical`"
            yield LintFinding(code=LintRule.POINTLESS_WEIGHT, node_id=child.id, message=message)
    averaged = [child for child in group.children if not child.critical]
    weights = {child.weight for child in averaged}
    if weights and max(weights) < 0 and len(averaged) == len(group.children):
        message = "has only penalties, so it always scores 0; make the group the penalty instead of its children"
        yield LintFinding(code=LintRule.ONLY_PENALTIES, node_id=group.id, message=message)
    elif len(weights) == 1 and max(weights) > 0 and weights != {1.0}:
        for child in averaged:
            message = f"weight {child.weight:g} has no effect because every non-critical sibling has it, too; remove it"
            yield LintFinding(code=LintRule.POINTLESS_WEIGHT, node_id=child.id, message=message)


def _duplicate_siblings(group: RubricNode) -> Iterator[LintFinding]:
    by_text: dict[str, list[RubricNode]] = defaultdict(list)
    for child in group.children:
        by_text[_plain(child.desc)].append(child)
    for first, *others in by_text.values():
        for other in others:
            message = f"has the same description as its sibling {first.id!r}; say what distinguishes them"
            yield LintFinding(code=LintRule.DUPLICATE_TEXT, node_id=other.id, message=message)


def _leaf(leaf: RubricNode, first_uses: dict[Hashable, str]) -> Iterator[LintFinding]:
    """Yield the findings of one leaf. ``first_uses`` maps each question to the first leaf that asks it."""
    claim = leaf.claim
    if claim is None:
        if leaf.check is None:
            yield LintFinding(
                code=LintRule.NO_CHECK,
                node_id=leaf.id,
                message="has neither a claim nor a check and always counts 0; add one, or remove it",
            )
        return
    question = (_plain(claim.text), claim.sources and frozenset(claim.sources), claim.instruction)
    first = first_uses.setdefault(question, leaf.id)
    if first != leaf.id:
        message = f"repeats the claim of {first!r} with the same sources; remove one, or put the value into the claim"
        yield LintFinding(code=LintRule.DUPLICATE_TEXT, node_id=leaf.id, message=message)
    if _is_compound(claim.text):
        message = "makes more than one statement; declare a leaf for each"
        yield LintFinding(code=LintRule.COMPOUND_CLAIM, node_id=leaf.id, message=message)
    vague = _VAGUE.search(_QUOTED.sub("Q", claim.text))
    if vague is not None:
        message = f"{vague[0]!r} cannot be verified; state what must be true, such as a value, a name or a number"
        yield LintFinding(code=LintRule.VAGUE_CLAIM, node_id=leaf.id, message=message)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_QUOTED = re.compile(
    r"""(?<!\w)'[^'\n]*'(?!\w)|"[^"\n]*"|`[^`\n]*`|\u201c[^\u201d\n]*\u201d|\u2018[^\u2019\n]*\u2019"""
)
_QUALITY = (
    "good|great|excellent|nice|comprehensive|thorough|detailed|relevant|helpful|useful|clear|appropriate|adequate"
    "|sufficient|reasonable|satisfactory|insightful|interesting|well[- ]\\w+|high[- ]quality"
)
_VAGUE = re.compile(
    rf"\b(?:is|are|was|were|be)\s+(?:(?:very|quite|really|sufficiently|both)\s+)?(?:{_QUALITY})\b"
    r"(?=\s*(?:[.,;!]|$|and\b|or\b|but\b|enough\b|to the (?:question|task|user)\b))"
    rf"|\b(?:{_QUALITY})\s+(?:answer|response|summary|overview|explanation|analysis|information|details|content)\b",
    re.IGNORECASE,
)
"""A quality as a predicate, or of the answer and its parts. "The sky was clear at noon" is a fact."""
_JOINT = re.compile(r"\s*;\s*|,?\s+(?i:and|but|as well as|while|whereas)\s+|(?<=\w\w[.!?])\s+(?=[A-Z])")
_FINITE_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|can|could|will|would|may|might|must|should|shall"
    r"|says|shows|states|lists|names|contains|includes|offers|costs|gives|supports|provides|allows|lies|lives|works"
    r"|uses|won|wrote|made|became|began|took|held|led|went|came|ran|built|sold|left|\w{2,}ed)\b",
    re.IGNORECASE,
)


def _is_compound(text: str) -> bool:
    """Return whether at least two parts between conjunctions contain a finite verb.

    This is a word test without a parser. Quoted names and titles are replaced first. "A and B are alike" has a verb on
    one side only.
    """
    parts = _JOINT.split(_QUOTED.sub("Q", text))
    return sum(_FINITE_VERB.search(part) is not None for part in parts) > 1
