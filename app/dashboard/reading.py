"""Results as trees, kept for a while: a reviewer opens leaf after leaf of the same one, and it is large."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from app.client import wire
from app.dashboard.api_access import Api
from app.dashboard.effects import Effect, EffectKind, effects
from app.dashboard.errors import NothingThere
from app.dashboard.outline import Node, Outline, outline
from app.dashboard.settled import Settled, settled
from app.dashboard.settling import OpenLeaf, open_leaves

KEPT = 16
_RANKS = {
    "failed": 0,
    "not_judged": 1,
    "open": 1,
    "undecided": 2,
    "partial": 3,
    "initialized": 4,
    "skipped": 5,
    "passed": 6,
}
_SMALL_TREE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What is read off a result, whichever part of it is shown."""

    outline: Outline
    effects: Mapping[str, Effect]
    open: Sequence[OpenLeaf]
    counts: Mapping[str, int]
    settled: Settled

    def state(self, node: Node) -> str:
        """What is shown of a node. Where nobody found out, "failed" is only what the public toolkit would say."""
        unknown = self.effects[node.key].kind is EffectKind.UNKNOWN
        return "open" if node.children and unknown and node.score == 0.0 else node.state

    def rank(self, node: Node) -> int:
        """Where a node stands among its siblings when failures come first."""
        return _RANKS.get(self.state(node), 6) * 1000 + 999 - round(999 * self.effects[node.key].worth)

    def is_open(self, node: Node) -> bool:
        """Whether a node is unfolded at first: everything in a small tree, else the top alone."""
        return node.depth < 1 or len(self.outline.by_key) <= _SMALL_TREE


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A result as the API gives it, its entity tag there, and its tree."""

    result: Mapping[str, Any]
    tag: str | None
    tree: Tree


class Reading:
    """The results that were opened last. The API is asked every time whether the viewer may see what is kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Read] = OrderedDict()

    async def read(self, api: Api, result_id: str) -> Read:
        """A result that the viewer may read.

        Raises:
            ApiError: there is none, or it is not theirs.
            NothingThere: it is not the result of an answer.
        """
        kept = self._kept.get(result_id)
        answer = await api.request("GET", f"/v1/results/{result_id}", tag=None if kept is None else kept.tag)
        if kept is None or answer.status_code != httpx.codes.NOT_MODIFIED:
            kept = await asyncio.to_thread(_read, answer)
            self._kept[result_id] = kept
        self._kept.move_to_end(result_id)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return kept


def _read(answer: httpx.Response) -> Read:
    result = wire.read(answer)
    if "eval_breakdown" not in result:
        raise NothingThere("This is the result of a suite's run: it has steps and no tree. The API has it as JSON")
    return Read(result=result, tag=answer.headers.get("etag"), tree=_tree(result))


def _tree(result: Mapping[str, Any]) -> Tree:
    drawn = outline(result)
    changed = effects(drawn)
    counts: dict[str, int] = {}
    for node in drawn.leaves:
        counts[node.state] = counts.get(node.state, 0) + 1
    return Tree(
        outline=drawn,
        effects=changed,
        open=open_leaves(drawn, changed, result.get("pages") or ()),
        counts=counts,
        settled=settled(result),
    )
