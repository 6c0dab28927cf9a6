"""Which earlier verdict keeps a leaf from being judged.

Two users, one set of rules. A public judge script settles leaves whenever it likes, so
``first_blocker`` looks at whatever is decided at that moment. A native judge declares first, so
``waits_for`` says what must be settled before a leaf and ``settled_blocker`` looks at nothing
else: the same verdicts give the same tree, whatever finished first. Decides only, writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic

from rubrics.node import Status, Strategy
from rubrics.tree import N, leaves_below

BLOCKING = frozenset({Status.FAILED, Status.SKIPPED})
"""The statuses of a leaf that block what depends on it. ``initialized`` does not: nothing is known yet."""


class PrerequisiteKind(StrEnum):
    """Why one node depends on another."""

    EXTRA = "extra"
    """Named by the author of the rubric."""
    CRITICAL_SIBLING = "critical_sibling"
    """A gate beside the node or beside one of its ancestors, before or after it."""
    PREDECESSOR = "predecessor"
    """An earlier step under a sequential parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prerequisite(Generic[N]):
    """A leaf or inner node that another node depends on.

    ``settled_first`` is whether a native leaf waits for it. The others run beside the leaf: critical
    siblings of a critical node, and critical siblings that come later in a sequence.
    """

    node: N
    kind: PrerequisiteKind
    settled_first: bool


def prerequisites(path: Sequence[N], extra: Sequence[N] = ()) -> list[Prerequisite[N]]:
    """Everything the last node of ``path`` depends on, in the order in which a blocker is named.

    ``path`` runs from the root down to the node; a node that is in no tree has only its extra
    prerequisites. The extra ones come first, then level by level upward; at each level critical
    siblings before plain predecessors.
    """
    found = [Prerequisite(node=node, kind=PrerequisiteKind.EXTRA, settled_first=True) for node in extra]
    for depth in range(len(path) - 1, 0, -1):
        found.extend(_level(path[depth - 1], path[depth]))
    return found


def _level(parent: N, node: N) -> list[Prerequisite[N]]:
    """What ``node`` depends on among the children of its own parent."""
    sequential = parent.strategy == Strategy.SEQUENTIAL
    gates: list[Prerequisite[N]] = []
    steps: list[Prerequisite[N]] = []
    before = True
    for sibling in parent.children:
        if sibling is node:
            before = False
        elif sibling.critical:
            # In a sequence the later gate already waits for this node, so this node cannot wait for it.
            first = before if sequential else not node.critical
            kind = PrerequisiteKind.CRITICAL_SIBLING
            gates.append(Prerequisite(node=sibling, kind=kind, settled_first=first))
        elif sequential and before:
            steps.append(Prerequisite(node=sibling, kind=PrerequisiteKind.PREDECESSOR, settled_first=True))
    return gates + steps


def first_blocker(needed: Iterable[Prerequisite[N]], state: Callable[[N], Status]) -> N | None:
    """The first leaf below any prerequisite that is already failed or skipped; None: nothing blocks.

    Leaves that are still initialized, childless inner nodes among them, do not block.
    """
    return next((leaf for each in needed for leaf in leaves_below(each.node) if state(leaf) in BLOCKING), None)


def waits_for(path: Sequence[N], extra: Sequence[N] = ()) -> list[N]:
    """The nodes that must be settled before the native leaf at the end of ``path`` is judged.

    Its named prerequisites; earlier steps under a sequential parent; the critical siblings of a node
    that is not critical itself. Critical siblings run side by side: one does not wait for another.
    """
    return [each.node for each in prerequisites(path, extra) if each.settled_first]


def settled_blocker(
    path: Sequence[N],
    extra: Sequence[N],
    *,
    state: Callable[[N], Status],
    by_code: Callable[[N], bool],
) -> N | None:
    """The first leaf that keeps the native leaf at the end of ``path`` from being judged; None: none does.

    Call it once everything in ``waits_for`` and every leaf decided by code (``by_code``) is settled.
    Of the siblings that run beside the leaf only those decided by code count, which keeps the
    outcome independent of what happens to finish first.
    """
    for each in prerequisites(path, extra):
        for leaf in leaves_below(each.node):
            if state(leaf) in BLOCKING and (each.settled_first or by_code(leaf)):
                return leaf
    return None
