"""Tree of a result as values for templates.

Public scripts may give two nodes the same id. Each node has a unique ``key``: its id if that is unique and valid in a
URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import ref

from rubrics.rubric import InvalidNode
from rubrics.scoring import NodeScore, score_nodes, unknown_leaves
from rubrics.tree import NodeKeys, Status
from rubrics.tree_json import GOOD_STATES, is_penalty, outcome_of, shown_state
from rubrics.verdict import Outcome, Verdict


class Node:
    """Node of a result's tree, never changed. A large tree has many: creation takes less time than a dataclass.

    ``fields`` is its JSON. ``number`` is the position of a leaf among all leaves, from 0, and None for inner nodes;
    ``place`` is the position among the children of ``parent``. ``outcome`` is that of a leaf, and None for inner nodes.
    ``penalty``: the node has a negative weight, or is below such a node.
    The reference to the parent is weak: a tree without cycles needs no garbage collection, now and when it is freed.
    """

    __slots__ = (
        "__weakref__", "_parent", "children", "critical", "depth", "fields", "id", "key", "number", "outcome",
        "penalty", "place", "score", "strategy", "weight",
    )  # fmt: skip

    def __init__(self, fields: Mapping[str, Any], key: str, parent: Node | None, place: int) -> None:
        self.fields = fields
        self.key = key
        self._parent = None if parent is None else ref(parent)
        self.place = place
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.id = str(fields["id"])
        self.critical = bool(fields.get("critical"))
        self.weight = float(fields.get("weight") or 1.0)
        self.penalty: bool = is_penalty(fields) or (parent is not None and parent.penalty)
        self.strategy = str(fields.get("strategy") or "parallel")
        self.score = -1.0 if fields.get("penalized") else float(fields.get("score") or 0.0)
        self.children: Sequence[Node] = ()
        self.outcome: str | None = None
        self.number: int | None = None

    @property
    def parent(self) -> Node | None:
        return None if self._parent is None else self._parent()

    @property
    def desc(self) -> str:
        return str(self.fields.get("desc") or "")

    @property
    def status(self) -> str:
        return str(self.fields.get("status") or "initialized")

    @property
    def name(self) -> str:
        """Last part of the id. The tree already shows the other parts."""
        return self.id.rpartition("/")[2] or self.id

    @property
    def state(self) -> str:
        """Outcome of a leaf, status of an inner node. A penalty that is decided applies or is avoided."""
        return self.shown(self.outcome or self.status)

    def shown(self, outcome: str) -> str:
        """Return the state of the node with another outcome, for example that of an override."""
        return shown_state(outcome, in_penalty=self.penalty)

    @property
    def is_missed(self) -> bool:
        """Return whether a leaf costs points, or may cost some."""
        return self.state not in GOOD_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Tree of a result. ``unknown`` are the keys of leaves whose score is unknown because they were not judged.

    ``above_unknown`` are the keys of these leaves and of all nodes above them. ``lowest`` and ``highest`` have the
    scores of all nodes, by ``id(node)``, with which the root scores lowest or highest. They are empty if there is no
    such leaf or if a weight is invalid.
    """

    root: Node
    by_key: Mapping[str, Node]
    leaves: Sequence[Node]
    unknown: frozenset[str]
    above_unknown: frozenset[str]
    lowest: Mapping[int, NodeScore]
    highest: Mapping[int, NodeScore]

    def bounds_of(self, node: Node) -> tuple[float, float]:
        """Return the lowest and highest possible score of a node."""
        if not self.highest or node.key not in self.above_unknown:
            return node.score, node.score
        ends = self.lowest[id(node)].score, self.highest[id(node)].score
        return min(ends), max(ends)

    def path(self, key: str) -> list[Node]:
        """Return the nodes from the root to a node."""
        node: Node | None = self.by_key[key]
        nodes: list[Node] = []
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def by_id(self, id: str | None) -> Node | None:
        """Return the first node with this id."""
        return next((node for node in self.by_key.values() if node.id == id), None)


def outline(result: Mapping[str, Any]) -> Outline:
    """Return the outline of a result's tree; of the first tree if a public script wrote several."""
    parts = result.get("eval_breakdown") or []
    tree = parts[0]["verification_tree"] if parts else _EMPTY_TREE
    by_key, leaves = dict[str, Node](), list[Node]()
    root = _add(tree, None, 0, NodeKeys(), by_key, leaves)
    unknown = _unknown(leaves)
    return Outline(
        root=root,
        by_key=by_key,
        leaves=leaves,
        unknown=unknown,
        above_unknown=_above(by_key[key] for key in unknown),
        lowest=_scores(root, unknown, 0.0),
        highest=_scores(root, unknown, 1.0),
    )


def _add(
    fields: Mapping[str, Any],
    parent: Node | None,
    place: int,
    keys: NodeKeys,
    by_key: dict[str, Node],
    leaves: list[Node],
) -> Node:
    """Add a node and all nodes below it to ``by_key`` and ``leaves``."""
    key = keys.key(str(fields["id"]))
    node = by_key[key] = Node(fields, key, parent, place)
    below = fields.get("children")
    if below:
        node.children = [_add(child, node, nth, keys, by_key, leaves) for nth, child in enumerate(below)]
    else:
        node.outcome, node.number = outcome_of(fields).value, len(leaves)
        leaves.append(node)
    return node


_EMPTY_TREE: Mapping[str, Any] = {"id": "root", "desc": "This result has no tree"}
_MAYBE_UNKNOWN = frozenset({Outcome.NOT_JUDGED, Outcome.SKIPPED})
_UNJUDGED = Verdict(outcome=Outcome.NOT_JUDGED)


def _unknown(leaves: Sequence[Node]) -> frozenset[str]:
    if all(leaf.outcome != Outcome.NOT_JUDGED for leaf in leaves):
        return frozenset()
    verdicts: dict[str, Verdict | None] = {
        leaf.id: _UNJUDGED
        if leaf.outcome == Outcome.NOT_JUDGED
        else Verdict(outcome=Outcome.SKIPPED, blocked_by=leaf.fields.get("blocked_by"))
        for leaf in reversed(leaves)  # of leaves with the same id, the first one counts
        if leaf.outcome in _MAYBE_UNKNOWN
    }
    ids = unknown_leaves(verdicts)
    return frozenset(leaf.key for leaf in leaves if leaf.id in ids)


def _above(leaves: Iterable[Node]) -> frozenset[str]:
    above: set[str] = set()
    for leaf in leaves:
        node: Node | None = leaf
        while node is not None and node.key not in above:
            above.add(node.key)
            node = node.parent
    return frozenset(above)


def _scores(root: Node, unknown: frozenset[str], points: float) -> Mapping[int, NodeScore]:
    try:
        return score_nodes(root, partial(leaf_points, unknown, points)) if unknown else {}
    except InvalidNode:  # public scripts may store such trees
        return {}


def leaf_points(unknown: frozenset[str], points: float, leaf: Node) -> NodeScore:
    """Return the score of a leaf for ``score_nodes``.

    ``points`` (0 or 1) is the score of ``unknown`` leaves. Those of penalties have the opposite score.
    """
    if leaf.fields.get("penalized"):
        return _PENALIZED
    return _POINTS[(points == 1.0) is not leaf.penalty if leaf.key in unknown else leaf.outcome == Outcome.PASSED]


_PENALIZED = NodeScore(-1.0, Status.FAILED)
_POINTS = NodeScore(0.0, Status.INITIALIZED), NodeScore(1.0, Status.INITIALIZED)
