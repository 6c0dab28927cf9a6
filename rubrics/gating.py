"""Gates: rules that skip a leaf because another leaf did not pass, and the order in which they settle leaves.

Public task scripts and native judges share these rules. A public script settles its leaves in any order, so
``first_blocker`` looks at all leaves that are settled at that moment. A native judge declares its whole rubric first:
``prerequisites_of`` returns what must be settled before a leaf, and ``gating_leaf`` looks only at that. Leaves decided
by code are settled before any claim is sent to a model. Equal verdicts therefore give equal trees, in whichever order
the leaves finish. The functions only read the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Generic

from rubrics.rubric import Rubric
from rubrics.scoring import bounds, compatible_score, is_unknown
from rubrics.tree import N, RubricNode, Status, Strategy, leaves_below
from rubrics.verdict import Verdict

BLOCKING = frozenset({Status.FAILED, Status.SKIPPED})
"""Statuses of a leaf that block the nodes that depend on it. ``initialized`` does not: the outcome is not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prerequisite(Generic[N]):
    """Leaf or inner node that another node depends on.

    ``settled_first``: a native leaf waits for it. The others are judged concurrently with the leaf: critical siblings
    of a critical node, and critical siblings that come later in a sequence.
    """

    node: N
    settled_first: bool


def prerequisites(path: Sequence[N], extra: Sequence[N] = ()) -> list[Prerequisite[N]]:
    """Return everything the last node of ``path`` depends on. ``first_blocker`` looks for the blocker in this order.

    ``path`` leads from the root down to the node. A node outside of a tree has only its extra prerequisites. Order: the
    extra ones, then one level after the other upward; at each level critical siblings before other predecessors.
    """
    edges = [Prerequisite(node=node, settled_first=True) for node in extra]
    for depth in range(len(path) - 1, 0, -1):
        edges.extend(_level(path[depth - 1], path[depth]))
    return edges


def _level(parent: N, node: N) -> list[Prerequisite[N]]:
    """Return the siblings that ``node`` depends on. A penalty depends on none: a closed gate does not excuse it."""
    if node.weight < 0:
        return []
    if parent.strategy != Strategy.SEQUENTIAL:
        first = not node.critical
        siblings = [sibling for sibling in parent.children if sibling.critical and sibling is not node]
        return [Prerequisite(node=sibling, settled_first=first) for sibling in siblings]
    gates: list[Prerequisite[N]] = []
    steps: list[Prerequisite[N]] = []
    before = True
    for sibling in parent.children:
        if sibling is node:
            before = False
        elif sibling.critical:
            # The later gate already waits for this node, so this node cannot wait for it.
            gates.append(Prerequisite(node=sibling, settled_first=before))
        elif before:
            steps.append(Prerequisite(node=sibling, settled_first=True))
    return gates + steps


def first_blocker(
    needed: Iterable[Prerequisite[N]],
    state: Callable[[N], Status],
    is_unknown: Callable[[N], bool],
    by_code: Callable[[N], bool] | None = None,
) -> N | None:
    """Return a leaf below a prerequisite that has failed or was skipped; None if nothing blocks.

    A penalty below a prerequisite blocks if it applies. The first leaf that is not unknown is returned, because it
    blocks whatever the unknown ones are; without one, the first. Leaves that are still initialized do not block. That
    includes inner nodes without children. With ``by_code``, prerequisites that are judged concurrently count only where
    code decides the leaf, so that the outcome does not depend on which one finishes first.
    """
    first = None
    for each in needed:
        for part in _parts(each.node):
            leaf: N | None = part
            if part.weight < 0:
                leaf = _applying_leaf(part, state, is_unknown)
            elif state(part) not in BLOCKING or not (by_code is None or each.settled_first or by_code(part)):
                continue
            if leaf is not None and not is_unknown(leaf):
                return leaf
            first = first or leaf
    return first


def _parts(node: N) -> Iterator[N]:
    """Yield the leaves below a node, and each penalty instead of the leaves below it."""
    if not node.children or node.weight < 0:
        yield node
        return
    for child in node.children:
        yield from _parts(child)


def _applying_leaf(penalty: N, state: Callable[[N], Status], is_unknown: Callable[[N], bool]) -> N | None:
    """Return a leaf because of which a penalty applies, or may apply; None if it does not apply."""

    def interval(leaf: N) -> tuple[float, float]:
        points = float(state(leaf) == Status.PASSED)
        return (0.0, 1.0) if is_unknown(leaf) else (points, points)

    applies = bounds(penalty, interval)
    leaves = [leaf for leaf in leaves_below(penalty) if is_unknown(leaf) is (applies.low == 0.0)]
    return None if applies.high == 0.0 else next(leaf for leaf in leaves if interval(leaf)[1] == 1.0)


def decided_by_code(leaf: RubricNode) -> bool:
    """Return whether the leaf is settled without a model."""
    return leaf.claim is None


def prerequisites_of(rubric: Rubric, leaf: RubricNode) -> list[RubricNode]:
    """Return the leaves and groups that must be settled before the native ``leaf`` is judged.

    These are its named prerequisites, the earlier steps below a sequential parent, and the critical siblings of a
    non-critical node. Critical siblings do not wait for each other.
    """
    return [each.node for each in prerequisites(rubric.path_to(leaf), rubric.required_by(leaf)) if each.settled_first]


def gating_leaf(rubric: Rubric, leaf: RubricNode) -> RubricNode | None:
    """Return the leaf that gates ``leaf``, according to the verdicts in the tree; None if nothing gates it.

    Call it after everything in ``prerequisites_of`` and every leaf decided by code has its verdict.
    """

    def verdict_of(leaf_id: str) -> Verdict | None:
        return rubric.find(leaf_id).verdict if leaf_id in rubric else None

    return first_blocker(
        prerequisites(rubric.path_to(leaf), rubric.required_by(leaf)),
        state=lambda node: compatible_score(node.verdict).status,
        by_code=decided_by_code,
        is_unknown=lambda node: is_unknown(node.id, verdict_of),
    )


def wait_cycle(rubric: Rubric) -> tuple[str, ...]:
    """Return the ids of a cycle of nodes, each waiting for the next and the last for the first; empty if there is none.

    Only ``requires`` can create a cycle, for example a critical node that requires a sibling which it gates.
    """
    if not any(node.requires for node in rubric.walk()):
        return ()
    graph: dict[str, set[str]] = {}
    for node in rubric.walk():
        if node.children:
            graph[node.id] = {child.id for child in node.children}
        elif not decided_by_code(node):
            graph[node.id] = {each.id for each in prerequisites_of(rubric, node)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return tuple(cycle[:0:-1])  # graphlib repeats the first node at the end and lists a node before its dependents
    return ()
