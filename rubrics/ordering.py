"""In which order the leaves of a native rubric can be settled, and what keeps one from being judged.

``gating`` applied to a ``Rubric``. Leaves decided by code are settled before any claim is asked.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from rubrics.gating import settled_blocker, waits_for
from rubrics.node import RubricNode
from rubrics.rubric import Rubric
from rubrics.scoring import compatible


def decided_by_code(leaf: RubricNode) -> bool:
    """Whether no judge is asked about this leaf."""
    return leaf.claim is None


def waits_of(rubric: Rubric, leaf: RubricNode) -> list[RubricNode]:
    """The nodes, leaves and groups, that must be settled before ``leaf`` is judged."""
    return waits_for(rubric.path_to(leaf), rubric.required_by(leaf))


def blocker_of(rubric: Rubric, leaf: RubricNode) -> RubricNode | None:
    """The leaf that keeps ``leaf`` from being judged, given the verdicts on the tree; None: none does.

    Call it once everything in ``waits_of`` and every leaf decided by code has its verdict.
    """
    return settled_blocker(
        rubric.path_to(leaf),
        rubric.required_by(leaf),
        state=lambda node: compatible(node.verdict).status,
        by_code=decided_by_code,
    )


def wait_cycle(rubric: Rubric) -> tuple[str, ...]:
    """The ids of nodes that wait for each other, each for the next one and the last for the first; usually empty.

    Only ``requires`` can close such a circle, alone or together with the order of the tree: a gate that
    requires a leaf which waits for that gate.
    """
    graph: dict[str, set[str]] = {}
    for node in rubric.walk():
        if node.children:
            graph[node.id] = {child.id for child in node.children}
        elif not decided_by_code(node):
            graph[node.id] = {each.id for each in waits_of(rubric, node)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return tuple(found[:0:-1])  # closed and from the one waited for; ours is open and from the one waiting
    return ()
