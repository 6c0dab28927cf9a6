"""Effect of each node on the score of its parent, as numbers and as text.

Pure; the rules are in ``rubrics.scoring``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.dashboard.outline import Node, Outline
from app.dashboard.wording import percent, points
from rubrics.node import Strategy


class EffectKind(StrEnum):
    """Kind of effect on the parent."""

    TOP = "top"
    ADDS = "adds"
    """Counts by its weight."""
    GATE_OPEN = "gate_open"
    """A critical child that passed: no effect on the score."""
    GATE_SHUT = "gate_shut"
    """A critical child that did not pass: the parent counts 0."""
    GATED = "gated"
    """Counts 0 because a critical sibling did not pass."""
    TOO_LATE = "too_late"
    """Counts 0 because an earlier step of the sequence did not pass."""
    UNKNOWN = "unknown"
    """Not judged: it could still count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Effect of one node: ``gained`` out of ``share``, both as parts of the parent's score.

    ``worth`` is the part of the whole score at stake. ``lost`` are the least and the most points of the whole score
    that the node costs; they differ if leaves below it were not judged. ``cause`` is the key of the sibling because of
    which the node counts 0.
    """

    kind: EffectKind
    share: float = 0.0
    gained: float = 0.0
    worth: float = 1.0
    lost: tuple[float, float] = (0.0, 0.0)
    cause: str | None = None
    text: str


def effects(outline: Outline) -> Mapping[str, Effect]:
    """Return the effect of every node, by key."""
    root = outline.root
    low, high = outline.bounds_of(root)
    by_key = {
        root.key: Effect(
            kind=EffectKind.TOP, share=1.0, gained=root.score, lost=(1.0 - high, 1.0 - low), text="the score"
        )
    }
    open_leaves = _open(outline)
    pending = [root] if root.children else []
    while pending:
        parent = pending.pop()
        by_key.update(_effects_of_children(parent, by_key[parent.key], open_leaves, outline))
        pending.extend(child for child in parent.children if child.children)
    return by_key


def _effects_of_children(
    parent: Node, parent_effect: Effect, open_nodes: frozenset[str], outline: Outline
) -> dict[str, Effect]:
    worth = parent_effect.worth
    failed_gate = next((child for child in parent.children if child.critical and child.score < 1.0), None)
    first_failed_step = _first_failed_step(parent)
    total = sum(child.weight for child in parent.children if not child.critical)
    by_key: dict[str, Effect] = {}
    for position, child in enumerate(parent.children):
        share = 0.0 if child.critical or not total else child.weight / total
        at_stake = worth if child.critical else worth * share
        cause_node, kind = _cause_and_kind(child, position, failed_gate, first_failed_step, parent.children)
        gained = share * child.score if kind is EffectKind.ADDS else 0.0
        unknown = child.key in open_nodes
        words = _description(kind, parent, cause_node, share, gained, unknown=unknown, alone=not total)
        if unknown and kind in {EffectKind.ADDS, EffectKind.GATE_SHUT}:
            kind = EffectKind.UNKNOWN
        cause = None if cause_node is None else cause_node.key
        lost = _lost(kind, child, at_stake, outline.bounds_of(child)) if parent_effect.lost[1] else (0.0, 0.0)
        by_key[child.key] = Effect(
            kind=kind, share=share, gained=gained, worth=at_stake, lost=lost, cause=cause, text=words
        )
    return by_key


def _lost(kind: EffectKind, child: Node, at_stake: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the points of the whole score that a node costs, the least and the most."""
    low, high = bounds
    match kind:
        case EffectKind.GATE_OPEN | EffectKind.GATED:
            return 0.0, 0.0
        case EffectKind.TOO_LATE:
            return (0.0, 0.0) if child.critical else (at_stake * (1.0 - high), at_stake)
        case _ if child.critical:
            return at_stake * (high < 1.0), at_stake * (low < 1.0)
        case _:
            return at_stake * (1.0 - high), at_stake * (1.0 - low)


def _cause_and_kind(
    child: Node, position: int, failed_gate: Node | None, first_failed_step: int | None, siblings: Sequence[Node]
) -> tuple[Node | None, EffectKind]:
    if first_failed_step is not None and position > first_failed_step:
        return siblings[first_failed_step], EffectKind.TOO_LATE
    if child.critical:
        return None, EffectKind.GATE_OPEN if child.score == 1.0 else EffectKind.GATE_SHUT
    if failed_gate is not None:
        return failed_gate, EffectKind.GATED
    return None, EffectKind.ADDS


def _first_failed_step(parent: Node) -> int | None:
    """Return the position of the first step of a sequence with a score below 1."""
    if parent.strategy != Strategy.SEQUENTIAL:
        return None
    return next((position for position, child in enumerate(parent.children) if child.score < 1.0), None)


def _description(
    kind: EffectKind, parent: Node, cause_node: Node | None, share: float, gained: float, *, unknown: bool, alone: bool
) -> str:
    cause_name = cause_node.name if cause_node is not None else ""
    match kind:
        case EffectKind.GATE_OPEN:
            return "required: met" if not alone else "required: met; there are no other claims"
        case EffectKind.GATE_SHUT if unknown:
            return f"required: not judged; {parent.name} counts 0 until it is"
        case EffectKind.GATE_SHUT:
            return f"required: not met; {parent.name} counts 0"
        case EffectKind.GATED:
            return f"{cause_name} is required and not met: counts 0"
        case EffectKind.TOO_LATE:
            return f"after {cause_name}, which did not pass: counts 0"
        case _ if unknown:
            return f"adds {points(gained)}, open up to {points(share)}"
        case _:
            return f"adds {points(gained)} of {points(share)} ({percent(share)})"


def _open(outline: Outline) -> frozenset[str]:
    """Return the keys of unknown leaves and of all nodes above them."""
    keys = set(outline.unknown)
    for key in outline.unknown:
        keys.update(node.key for node in outline.path(key))
    return frozenset(keys)
