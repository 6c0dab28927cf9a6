"""What a result's score would be if a person's verdicts stood in place of the judge's. Pure; the result stays as it is.

A leaf that a person settled is known, and grounded: somebody looked. Where it opens a gate, the leaves behind it were
never judged, so the score lies between bounds until they are. Where it shuts one, what lies behind counts 0, as if the
judge had said so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from rubrics.addresses import Addresses
from rubrics.node import Strategy
from rubrics.scoring import Score, bounds
from rubrics.tree import leaves_below, walk
from rubrics.verdict import Outcome


class Word(Protocol):
    """What a person said of a leaf. ``outcome`` is None where it takes back the one that ``withdraws`` names."""

    @property
    def id(self) -> str: ...

    @property
    def leaf(self) -> str: ...

    @property
    def outcome(self) -> str | None: ...

    @property
    def withdraws(self) -> str | None: ...


W = TypeVar("W", bound=Word)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JudgedNode:
    """A node of a stored tree. ``requires`` are the ids that it and the groups around it name, ``data`` its JSON."""

    key: str
    id: str
    critical: bool
    weight: float
    strategy: str
    children: tuple[JudgedNode, ...]
    requires: frozenset[str]
    outcome: Outcome
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overruled:
    """The three numbers of a result as they would be."""

    score: Score
    score_strict: Score
    final_score: float


def in_force(words: Iterable[W]) -> dict[str, W]:
    """What stands of all that was said of a result (oldest first), by leaf: the last word on it not taken back."""
    every = list(words)
    withdrawn = {word.withdraws for word in every}
    return {word.leaf: word for word in every if word.outcome is not None and word.id not in withdrawn}


def judged_tree(result: Mapping[str, Any]) -> JudgedNode | None:
    """A result's tree; the first one where a public script wrote several, None where there is none."""
    parts = result.get("eval_breakdown") or ()
    return _node(parts[0]["verification_tree"], frozenset(), Addresses()) if parts else None


def judged_leaves(result: Mapping[str, Any]) -> Mapping[str, JudgedNode]:
    """The leaves of a result, by key."""
    root = judged_tree(result)
    return {} if root is None else {leaf.key: leaf for leaf in leaves_below(root)}


def overruled(root: JudgedNode, said: Mapping[str, bool]) -> Overruled:
    """The scores with ``said`` in place of the judge's verdicts: whether a leaf passes, by its key.

    Raises:
        InvalidNode: a weight that is not a finite number above zero.
    """
    intervals = _Intervals(root, said)
    strict = _Intervals(root, said, strict=True)
    score = bounds(root, intervals)
    # The public number knows no third state: there what is unknown counts 0.
    return Overruled(score=score, score_strict=bounds(root, strict), final_score=score.low)


def leaf_intervals(root: JudgedNode, said: Mapping[str, bool]) -> Callable[[JudgedNode], tuple[float, float]]:
    """In which interval the points of each leaf lie with ``said`` in place of the judge's verdicts."""
    return _Intervals(root, said)


class _Intervals:
    """In which interval the points of each leaf lie."""

    def __init__(self, root: JudgedNode, said: Mapping[str, bool], *, strict: bool = False) -> None:
        self._said = said
        self._strict = strict
        # Of leaves with the same id the first is the one that others name.
        self._by_id: dict[str, JudgedNode] = {}
        for node in walk(root):
            self._by_id.setdefault(node.id, node)

    def __call__(self, leaf: JudgedNode) -> tuple[float, float]:
        if leaf.key in self._said:
            points = float(self._said[leaf.key])
        elif self._unknown(leaf):
            return 0.0, 1.0
        else:
            points = float(self._passed(leaf) and not self._shut_by_hand(leaf))
        return points, points

    def _passed(self, leaf: JudgedNode) -> bool:
        counts = leaf.data.get("grounded") is not False or not self._strict
        return leaf.outcome is Outcome.PASSED and counts

    def _unknown(self, leaf: JudgedNode) -> bool:
        """Whether nobody found out, or nobody looked because of something that no longer stands in the way."""
        return any(
            (step.key in self._said and self._said[step.key])
            or (step.key not in self._said and step.outcome is Outcome.NOT_JUDGED)
            for step in self._blockers(leaf)
        )

    def _blockers(self, leaf: JudgedNode) -> Iterator[JudgedNode]:
        """The leaf, and what kept it from being judged, as far back as somebody's word or the first verdict."""
        seen: set[str] = set()
        current: JudgedNode | None = leaf
        while current is not None and current.key not in seen:
            yield current
            seen.add(current.key)
            if current.key in self._said or current.outcome is not Outcome.SKIPPED:
                return
            current = self._by_id.get(str(current.data.get("blocked_by")))

    def _shut_by_hand(self, leaf: JudgedNode) -> bool:
        """Whether a person failed something that the leaf requires. Gates of siblings are the fold's."""
        named = (self._by_id[id] for id in leaf.requires if id in self._by_id)
        return any(self._said.get(below.key) is False for node in named for below in leaves_below(node))


def _node(data: Mapping[str, Any], above: frozenset[str], addresses: Addresses) -> JudgedNode:
    requires = above | frozenset(map(str, data.get("requires") or ()))
    key = addresses.key(str(data["id"]))
    return JudgedNode(
        key=key,
        id=str(data["id"]),
        critical=bool(data.get("critical")),
        weight=float(data.get("weight") or 1.0),
        strategy=str(data.get("strategy") or Strategy.PARALLEL),
        children=tuple(_node(child, requires, addresses) for child in data.get("children") or ()),
        requires=requires,
        outcome=_outcome(data),
        data=data,
    )


def _outcome(data: Mapping[str, Any]) -> Outcome:
    """A leaf's outcome; results of the public toolkit have only a status."""
    for named in (data.get("outcome"), data.get("status")):
        if named in set(Outcome):
            return Outcome(named)
    return Outcome.UNDECIDED
