"""Cache of parsed results and their trees. A reviewer opens many leaves of the same large result."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from app.dashboard.api_access import Api
from app.dashboard.effects import Effect, EffectKind, effects
from app.dashboard.errors import NotFound
from app.dashboard.leaf_overrides import ResultOverrides, result_overrides
from app.dashboard.open_leaves import OpenLeaf, open_leaves
from app.dashboard.outline import Node, Outline, outline
from assay_client import wire

MAX_CACHED = 16
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
    """Values derived from a result that all parts of its page use."""

    outline: Outline
    effects: Mapping[str, Effect]
    open_leaves: Sequence[OpenLeaf]
    counts: Mapping[str, int]
    overrides: ResultOverrides

    def state(self, node: Node) -> str:
        """Return the displayed state. An inner node that scores 0 only because of unjudged leaves is "open"."""
        unknown = self.effects[node.key].kind is EffectKind.UNKNOWN
        return "open" if node.children and unknown and node.score == 0.0 else node.state

    def rank(self, node: Node) -> int:
        """Return the sort key of a node among its siblings if failures come first."""
        return _RANKS.get(self.state(node), 6) * 1000 + 999 - round(999 * self.effects[node.key].worth)

    def is_open(self, node: Node) -> bool:
        """Return whether a node is initially expanded: all nodes of a small tree, otherwise only the root."""
        return node.depth < 1 or len(self.outline.by_key) <= _SMALL_TREE


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """Result as returned by the API, with its entity tag and its tree."""

    result: Mapping[str, Any]
    tag: str | None
    tree: Tree


class ResultCache:
    """LRU cache of results. Each access still asks the API, which checks the viewer's permission."""

    def __init__(self) -> None:
        self._cached: OrderedDict[str, CachedResult] = OrderedDict()

    async def get(self, api: Api, result_id: str) -> CachedResult:
        """Return a result that the viewer may read.

        Raises:
            ApiError: No such result, or the viewer has no access to it.
            NotFound: The result is not that of an answer.
        """
        cached = self._cached.get(result_id)
        response = await api.request("GET", f"/v1/results/{result_id}", tag=None if cached is None else cached.tag)
        if cached is None or response.status_code != httpx.codes.NOT_MODIFIED:
            cached = await asyncio.to_thread(_parse, response)
            self._cached[result_id] = cached
        self._cached.move_to_end(result_id)
        while len(self._cached) > MAX_CACHED:
            self._cached.popitem(last=False)
        return cached


def _parse(response: httpx.Response) -> CachedResult:
    result = wire.read_json(response)
    if "eval_breakdown" not in result:
        raise NotFound(
            "This is the result of a suite run or of a citation check, which has no tree. Its JSON is available from "
            "the API"
        )
    return CachedResult(result=result, tag=response.headers.get("etag"), tree=_tree(result))


def _tree(result: Mapping[str, Any]) -> Tree:
    parsed_outline = outline(result)
    node_effects = effects(parsed_outline)
    counts: dict[str, int] = {}
    for node in parsed_outline.leaves:
        counts[node.state] = counts.get(node.state, 0) + 1
    return Tree(
        outline=parsed_outline,
        effects=node_effects,
        open_leaves=open_leaves(parsed_outline, node_effects, result.get("pages") or ()),
        counts=counts,
        overrides=result_overrides(result),
    )
