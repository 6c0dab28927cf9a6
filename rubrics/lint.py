"""Smells of a rubric: things that score without an error, and yet are hardly what its author meant.

A smell is advice. Nothing here stops a rubric from being used; what must not happen at all is
refused by ``Rubric.add``.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from rubrics.node import RubricNode
from rubrics.ordering import wait_cycle
from rubrics.rubric import Rubric


class SmellCode(StrEnum):
    """What kind of smell."""

    DUPLICATE_TEXT = "duplicate_text"
    """The same claim about the same sources twice, or two siblings with the same description."""
    BAD_WEIGHT = "bad_weight"
    """A weight that is zero, negative or not finite; such a tree cannot be scored."""
    POINTLESS_WEIGHT = "pointless_weight"
    """A weight that changes nothing: on a gate, or equal to that of every sibling it is averaged with."""
    ONLY_CRITICAL = "only_critical"
    """A group of nothing but critical children: all or nothing, no partial credit."""
    NO_CHECK = "no_check"
    """A leaf with neither claim nor check; it always counts 0."""
    COMPOUND_CLAIM = "compound_claim"
    """A claim that says two things; a judge cannot answer yes to one half."""
    SINGLE_CHILD = "single_child"
    """A group below the root with one child: the level says nothing."""
    CYCLE = "cycle"
    """Leaves that wait for each other and can never be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smell:
    """One smell at one node."""

    code: SmellCode
    node_id: str
    message: str


def lint(rubric: Rubric) -> list[Smell]:
    """The smells of a rubric, in the order of its nodes, cycles last."""
    found: list[Smell] = []
    asked: dict[Hashable, str] = {}
    for node in rubric.walk():
        if node.children:
            found += _sibling_weights(node)
            found += _duplicate_siblings(node)
            found += _shape(rubric, node)
        else:
            found += _leaf(node, asked)
    cycle = wait_cycle(rubric)
    if cycle:
        found.append(Smell(code=SmellCode.CYCLE, node_id=cycle[0], message=f"waits in a circle: {' > '.join(cycle)}"))
    return found


def _shape(rubric: Rubric, group: RubricNode) -> Iterator[Smell]:
    if len(group.children) == 1:
        if group is not rubric.root:
            message = f"its only child is {group.children[0].id!r}; one of the two levels is enough"
            yield Smell(code=SmellCode.SINGLE_CHILD, node_id=group.id, message=message)
    elif all(child.critical for child in group.children):
        message = "every child is critical, so the group gives all or nothing"
        yield Smell(code=SmellCode.ONLY_CRITICAL, node_id=group.id, message=message)


def _sibling_weights(group: RubricNode) -> Iterator[Smell]:
    for child in group.children:
        if not (math.isfinite(child.weight) and child.weight > 0):
            message = f"weight {child.weight!r} is not a finite number above zero"
            yield Smell(code=SmellCode.BAD_WEIGHT, node_id=child.id, message=message)
        elif child.critical and child.weight != 1.0:
            message = f"weight {child.weight!r} on a critical node has no effect: a gate is not averaged"
            yield Smell(code=SmellCode.POINTLESS_WEIGHT, node_id=child.id, message=message)
    averaged = [child for child in group.children if not child.critical]
    weights = {child.weight for child in averaged}
    if len(weights) == 1 and weights != {1.0}:
        for child in averaged:
            message = f"weight {child.weight!r} has no effect: no sibling it is averaged with has another"
            yield Smell(code=SmellCode.POINTLESS_WEIGHT, node_id=child.id, message=message)


def _duplicate_siblings(group: RubricNode) -> Iterator[Smell]:
    by_text: dict[str, list[RubricNode]] = defaultdict(list)
    for child in group.children:
        by_text[_plain(child.desc)].append(child)
    for first, *others in by_text.values():
        for other in others:
            message = f"same description as its sibling {first.id!r}"
            yield Smell(code=SmellCode.DUPLICATE_TEXT, node_id=other.id, message=message)


def _leaf(leaf: RubricNode, asked: dict[Hashable, str]) -> Iterator[Smell]:
    """Smells of one leaf; ``asked`` remembers each question and the leaf that asked it first."""
    claim = leaf.claim
    if claim is None:
        if leaf.check is None:
            yield Smell(code=SmellCode.NO_CHECK, node_id=leaf.id, message="has neither a claim nor a check")
        return
    question = (_plain(claim.text), claim.sources and frozenset(claim.sources), claim.instruction)
    first = asked.setdefault(question, leaf.id)
    if first != leaf.id:
        message = f"asks the same of the same sources as {first!r}"
        yield Smell(code=SmellCode.DUPLICATE_TEXT, node_id=leaf.id, message=message)
    if _is_compound(claim.text):
        message = "says more than one thing; give each its own leaf"
        yield Smell(code=SmellCode.COMPOUND_CLAIM, node_id=leaf.id, message=message)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_QUOTED = re.compile(
    r"""(?<!\w)'[^'\n]*'(?!\w)|"[^"\n]*"|`[^`\n]*`|\u201c[^\u201d\n]*\u201d|\u2018[^\u2019\n]*\u2019"""
)
_JOINT = re.compile(r"\s*;\s*|,?\s+(?i:and|but|as well as|while|whereas)\s+|(?<=\w\w[.!?])\s+(?=[A-Z])")
_FINITE_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|can|could|will|would|may|might|must|should|shall"
    r"|says|shows|states|lists|names|contains|includes|offers|costs|gives|supports|provides|allows|lies|lives|works"
    r"|uses|won|wrote|made|became|began|took|held|led|went|came|ran|built|sold|left|\w{2,}ed)\b",
    re.IGNORECASE,
)


def _is_compound(text: str) -> bool:
    """Whether at least two of the parts between conjunctions have a finite verb of their own.

    A plain word test: names and titles in quotes are blanked first, and "A and B are alike" has its
    verb on one side only.
    """
    parts = _JOINT.split(_QUOTED.sub("Q", text))
    return sum(_FINITE_VERB.search(part) is not None for part in parts) > 1
