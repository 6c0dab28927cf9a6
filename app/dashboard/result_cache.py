"""Cache of parsed results and their trees. A reviewer opens many leaves of the same large result."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx
from pydantic_core import from_json

from app.dashboard.api_access import Api
from app.dashboard.effects import Effects
from app.dashboard.errors import NotFound
from app.dashboard.outline import Node, Outline, outline
from assay_client import wire
from cache.single_flight import LRUCache
from rubrics.scoring import Score, bounded_score
from rubrics.tree_json import BAD_STATES

MAX_CACHED = 16
_LARGE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOverrides:
    """Overrides of one result as the API returns them: the one in force and all, newest first, by leaf.

    ``withdrawal`` of an override is the row that withdrew it.
    """

    in_force: Mapping[str, Mapping[str, Any]]
    by_leaf: Mapping[str, Sequence[Mapping[str, Any]]]
    scores: Mapping[str, Any] | None
    """The three scores with the overrides in force; None if no override is in force."""


def result_overrides(result: Mapping[str, Any]) -> ResultOverrides:
    rows: Sequence[Mapping[str, Any]] = result.get("overrides") or ()
    withdrawals = {row["withdraws"]: row for row in rows}
    by_leaf: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in reversed(rows):
        if row["outcome"] is not None:
            by_leaf[row["leaf"]].append({**row, "withdrawal": withdrawals.get(row["id"])})
    in_force = {leaf: override for leaf, every in by_leaf.items() for override in every if override["in_force"]}
    return ResultOverrides(in_force=in_force, by_leaf=by_leaf, scores=result.get("with_overrides"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Values derived from a result that all parts of its page use. ``not_passed`` are leaves in tree order."""

    outline: Outline
    effects: Effects
    counts: Mapping[str, int]
    overrides: ResultOverrides
    not_passed: Sequence[Node]

    def state(self, node: Node) -> str:
        """Return the displayed state. An inner node that scores 0 only because of unjudged leaves is "open"."""
        is_open = node.children and node.score == 0.0 < self.outline.bounds_of(node)[1]
        return "open" if is_open and node.state != "skipped" else node.state

    def score(self, node: Node) -> Score:
        """Return the score of a node, or its bounds if leaves below it were not judged."""
        low, high = self.outline.bounds_of(node)
        return bounded_score(low, high)

    @property
    def first_leaf(self) -> Node | None:
        """Return the leaf to show first: the first failed claim, else what did not pass, else the first claim."""
        claims = (leaf for leaf in self.not_passed if leaf.fields.get("claim"))
        failed = (leaf for leaf in chain(claims, self.not_passed) if leaf.state in BAD_STATES)
        judged = (leaf for leaf in self.outline.leaves if leaf.fields.get("claim"))
        return next(chain(failed, self.not_passed, judged), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """Result as returned by the API, with its entity tag and its tree."""

    result: Mapping[str, Any]
    tag: str | None
    tree: Tree


class ResultCache:
    """LRU cache of results. Each access still asks the API, which checks the viewer's permission."""

    def __init__(self) -> None:
        self._cached: LRUCache[str, CachedResult] = LRUCache(MAX_CACHED)

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
            self._cached.put(result_id, cached, 1)
        return cached


def _parse(response: httpx.Response) -> CachedResult:
    content = wire.checked(response).content
    # Collections over the objects of a large tree take as long as its parsing.
    with excluded_from_collections() if len(content) > _LARGE_BYTES else nullcontext():
        return _parsed(content, response)


def _parsed(content: bytes, response: httpx.Response) -> CachedResult:
    try:
        result = from_json(content, cache_strings="all")
    except ValueError:  # lone surrogates and deep trees, which only the standard library reads
        result = wire.read_json(response)
    if "eval_breakdown" not in result:
        raise NotFound(
            "This is the result of a suite run or of a citation check, which has no tree. Its JSON is available from "
            "the API"
        )
    return CachedResult(result=result, tag=response.headers.get("etag"), tree=tree_of(result))


@contextmanager
def excluded_from_collections() -> Iterator[None]:
    """Exclude the objects that the block creates from all garbage collections.

    They must have no reference cycles: they are freed when the last reference to them is deleted. Other recent garbage
    is collected first, because it would be excluded as well.
    """
    gc.collect(1)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def tree_of(result: Mapping[str, Any]) -> Tree:
    """Return the tree of a result. CPU-bound: tens of milliseconds for 10,000 leaves."""
    parsed_outline = outline(result)
    leaves = parsed_outline.leaves
    return Tree(
        outline=parsed_outline,
        effects=Effects(parsed_outline),
        counts=Counter(leaf.state for leaf in leaves),
        overrides=result_overrides(result),
        not_passed=[leaf for leaf in leaves if leaf.is_missed],
    )
