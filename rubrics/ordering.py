"""Order in which the leaves of a native rubric are settled.

Applies ``gating`` to a ``Rubric``. Leaves decided by code are settled before any claim is sent to a model.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from rubrics.gating import settled_before, settled_blocker
from rubrics.node import RubricNode
from rubrics.rubric import Rubric
from rubrics.scoring import compatible_score, is_unknown
from rubrics.verdict import Verdict


def decided_by_code(leaf: RubricNode) -> bool:
    """Return whether the leaf is settled without a model."""
    return leaf.claim is None


def prerequisites_of(rubric: Rubric, leaf: RubricNode) -> list[RubricNode]:
    """Return the leaves and groups that must be settled before ``leaf`` is judged."""
    return settled_before(rubric.path_to(leaf), rubric.required_by(leaf))


def gating_leaf(rubric: Rubric, leaf: RubricNode) -> RubricNode | None:
    """Return the leaf that gates ``leaf``, according to the verdicts in the tree; None if nothing gates it.

    Call it after everything in ``prerequisites_of`` and every leaf decided by code has its verdict.
    """

    def verdict_of(leaf_id: str) -> Verdict | None:
        return rubric.find(leaf_id).verdict if leaf_id in rubric else None

    return settled_blocker(
        rubric.path_to(leaf),
        rubric.required_by(leaf),
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
