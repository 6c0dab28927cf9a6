"""Effect of each node on the score of its parent, as numbers and as text.

Pure; the rules are in ``rubrics.scoring``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from app.dashboard.outline import Node, Outline
from app.dashboard.wording import percent, points
from rubrics.tree import Strategy


class EffectKind(StrEnum):
    """Kind of effect on the parent."""

    TOP = "top"
    ADDS = "adds"
    """Counts by its weight."""
    SUBTRACTS = "subtracts"
    """A penalty, or part of one: takes away by its weight."""
    GATE_OPEN = "gate_open"
    """A critical child that passed: no effect on the score."""
    GATE_SHUT = "gate_shut"
    """A critical child that did not pass: the parent counts 0."""
    GATED = "gated"
    """Counts 0 because a critical sibling did not pass."""
    TOO_LATE = "too_late"
    """Counts 0 because an earlier step of the sequence did not pass."""
    WAITING = "waiting"
    """Counts only if a critical sibling or an earlier step that was not judged passes."""
    UNKNOWN = "unknown"
    """Not judged: it could still count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Effect of one node. ``share``: the part of the parent's score that it can add; negative for a penalty.

    ``worth`` is the part of the whole score at stake. ``lost`` are the least and the most points of the whole score
    that the node costs; they differ if leaves below it were not judged. ``cause`` is the key of the sibling because of
    which the node counts 0.
    """

    kind: EffectKind
    share: float = 0.0
    worth: float = 1.0
    lost: tuple[float, float] = (0.0, 0.0)
    cause: str | None = None
    text: str


class Effects(dict[str, Effect]):
    """Effects of the nodes of a tree by key, each computed when it is first read."""

    def __init__(self, outline: Outline) -> None:
        super().__init__()
        self._outline = outline
        self._siblings: dict[str, _Siblings] = {}

    def __missing__(self, key: str) -> Effect:
        node = self._outline.by_key[key]
        self[key] = self._top(node) if node.parent is None else self._of_child(node, node.parent)
        return self[key]

    def _top(self, root: Node) -> Effect:
        low, high = self._outline.bounds_of(root)
        return Effect(kind=EffectKind.TOP, share=1.0, lost=(1.0 - high, 1.0 - low), text="the score")

    def _of_child(self, child: Node, parent: Node) -> Effect:
        siblings = self._siblings.get(parent.key)
        if siblings is None:
            siblings = self._siblings[parent.key] = _siblings(parent)
        above, total = self[parent.key], siblings.weight
        share = 0.0 if child.critical or not total else child.weight / total
        at_stake = above.worth if child.critical else above.worth * abs(share)
        cause, kind = _cause_and_kind(child, siblings)
        gained = share * child.score if kind in {EffectKind.ADDS, EffectKind.SUBTRACTS} else 0.0
        unknown = child.key in self._outline.above_unknown
        lost = _lost(kind, child, at_stake, self._outline.bounds_of(child)) if above.lost[1] else (0.0, 0.0)
        may_pass = cause is not None and self._outline.bounds_of(cause)[1] == 1.0
        is_open = unknown if cause is None else may_pass
        words = _description(kind, parent, cause, share, gained, unknown=is_open, alone=not total)
        if may_pass:
            kind = EffectKind.WAITING
        elif unknown and kind in {EffectKind.ADDS, EffectKind.SUBTRACTS, EffectKind.GATE_SHUT}:
            kind = EffectKind.UNKNOWN
        return Effect(
            kind=kind,
            share=share,
            worth=at_stake,
            lost=lost,
            cause=None if cause is None else cause.key,
            text=words,
        )


class _Siblings(NamedTuple):
    """Children of one node: the first gate and the first step that did not pass, and the weight that counts."""

    failed_gate: Node | None
    failed_step: Node | None
    weight: float


def _siblings(parent: Node) -> _Siblings:
    is_sequence = parent.strategy == Strategy.SEQUENTIAL
    missed = [child for child in parent.children if child.score < 1.0 and child.weight > 0]
    weights = [child.weight for child in parent.children if not child.critical]
    return _Siblings(
        failed_gate=next((child for child in missed if child.critical), None),
        failed_step=next(iter(missed), None) if is_sequence else None,
        weight=sum(weight for weight in weights if weight > 0) or sum(map(abs, weights)),
    )


def _lost(kind: EffectKind, child: Node, at_stake: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the points of the whole score that a node costs, the least and the most."""
    low, high = bounds
    match kind:
        case EffectKind.GATE_OPEN | EffectKind.GATED:
            return 0.0, 0.0
        case EffectKind.SUBTRACTS:
            return at_stake * low, at_stake * high
        case EffectKind.TOO_LATE:
            return (0.0, 0.0) if child.critical else (at_stake * (1.0 - high), at_stake)
        case _ if child.critical:
            return at_stake * (high < 1.0), at_stake * (low < 1.0)
        case _:
            return at_stake * (1.0 - high), at_stake * (1.0 - low)


def _cause_and_kind(child: Node, siblings: _Siblings) -> tuple[Node | None, EffectKind]:
    if siblings.failed_step is not None and child.place > siblings.failed_step.place:
        return siblings.failed_step, EffectKind.TOO_LATE
    if child.critical:
        return None, EffectKind.GATE_OPEN if child.score == 1.0 else EffectKind.GATE_SHUT
    if child.weight > 0 and siblings.failed_gate is not None:
        return siblings.failed_gate, EffectKind.GATED
    return None, EffectKind.SUBTRACTS if child.penalty else EffectKind.ADDS


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
        case EffectKind.GATED if unknown:
            return f"{cause_name} is required and not judged: counts 0 until it is"
        case EffectKind.GATED:
            return f"{cause_name} is required and not met: counts 0"
        case EffectKind.TOO_LATE if unknown:
            return f"after {cause_name}, which was not judged: counts 0 until it is"
        case EffectKind.TOO_LATE:
            return f"after {cause_name}, which did not pass: counts 0"
        case EffectKind.SUBTRACTS if unknown:
            return f"penalty: subtracts {points(abs(gained))}, open up to {points(abs(share))}"
        case EffectKind.SUBTRACTS:
            return f"penalty: subtracts {points(abs(gained))} of {points(abs(share))}"
        case _ if unknown:
            return f"adds {points(gained)}, open up to {points(share)}"
        case _:
            return f"adds {points(gained)} of {points(share)} ({percent(share)})"
