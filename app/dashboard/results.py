"""Dashboard page of a result: scores with bounds, answer, tree, the evidence of each leaf, and forms for overrides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.csv_tables import Cell
from app.dashboard.answer_html import RenderedAnswer
from app.dashboard.downloads import Format, csv_file
from app.dashboard.effects import Effect
from app.dashboard.errors import NotFound
from app.dashboard.extracted_values import MAX_VALUES, extracted_values
from app.dashboard.html_route import HtmlRoute, head_first
from app.dashboard.leaf_view import leaf_view
from app.dashboard.outline import Node, Outline, leaf_points
from app.dashboard.rendering import HEADERS
from app.dashboard.result_cache import Tree
from app.dashboard.viewer import FormCheck, IdPath, Viewer, ViewerDep
from app.dashboard.wording import REASONS, remedy_words
from rubrics.scoring import Score, bounded_score, score_with
from rubrics.tree import Strategy
from rubrics.tree_json import GOOD_STATES, script_of
from rubrics.verdict import Outcome, Reason

SECTION: Final = 100
"""Maximum number of children of one group in a response."""
MAX_ROWS: Final = 200
"""After this number of rows, groups stay unloaded."""
SMALL_TREE: Final = 60
"""Trees with at most this number of nodes are initially expanded."""


class Show(StrEnum):
    """Nodes of the tree that are shown."""

    ALL = "all"
    MISSED = "missed"
    """Only what did not pass, with all groups expanded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unloaded:
    """Children of a group that the response omits.

    ``count`` children from position ``at``, of which ``first`` is the first; if ``earlier``, the ``count`` children
    before the loaded ones, of which the section from ``at`` is loaded next.
    """

    group: str
    at: int
    count: int
    first: Node
    earlier: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One node. ``below`` are the rows of its children."""

    node: Node
    expanded: bool
    below: Sequence[Row | Unloaded]


class TreeRows:
    """Builder of the rows of a tree that one response contains. ``expand``: all groups are expanded.

    A tree can have ten thousand leaves. A response contains about ``MAX_ROWS`` rows at most: the groups above the
    selected leaf are expanded, each with a section of ``SECTION`` children around this leaf.
    """

    def __init__(self, tree: Tree, *, show: Show = Show.ALL, chosen: str | None = None, expand: bool = False) -> None:
        self._tree = tree
        self._show = show
        outline = tree.outline
        self._path = [] if chosen is None else [node.key for node in outline.path(chosen)]
        self._expand = expand or show is not Show.ALL or len(outline.by_key) <= SMALL_TREE
        self._count = 0

    def root(self) -> Row:
        return self._row(self._tree.outline.root)

    def section(self, group: str, at: int, *, earlier: bool = False) -> list[Row | Unloaded]:
        """Return the rows that replace an ``Unloaded`` row."""
        below = self._section(self._tree.outline.by_key[group], at)
        return [row for row in below if isinstance(row, Row) or row.group != group or row.earlier is earlier]

    def _row(self, node: Node) -> Row:
        self._count += 1
        expanded = self._expand or node.depth == 0 or node.key in self._path
        return Row(node=node, expanded=expanded, below=self._below(node, expanded=expanded))

    def _below(self, node: Node, *, expanded: bool) -> list[Row | Unloaded]:
        children = self._children(node)
        if not children:
            return []
        on_path = [place for place, child in enumerate(children) if child.key in self._path]
        if not on_path and (not expanded or self._count >= MAX_ROWS):
            return [Unloaded(group=node.key, at=0, count=len(children), first=children[0])]
        return self._section(node, on_path[0] // SECTION * SECTION if on_path else 0)

    def _section(self, node: Node, at: int) -> list[Row | Unloaded]:
        children = self._children(node)
        end = at + SECTION
        rows: list[Row | Unloaded] = [self._row(child) for child in children[at:end]]
        if at > 0:
            start = max(0, at - SECTION)
            rows.insert(0, Unloaded(group=node.key, at=start, count=at, first=children[start], earlier=True))
        if end < len(children):
            rows.append(Unloaded(group=node.key, at=end, count=len(children) - end, first=children[end]))
        return rows

    def _children(self, node: Node) -> Sequence[Node]:
        if self._show is Show.ALL:
            return node.children
        return [child for child in node.children if self._tree.state(child) not in GOOD_STATES]


_PAGE_REASONS = frozenset({Reason.CAPTURE_FAILED, Reason.CAPTURE_BLOCKED, Reason.EVIDENCE_CORRUPT})
_EVIDENCE_OUTCOMES = frozenset({"ok", "partial"})
PER_PAGE = 20
"""Leaves in one response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLeaf:
    """Leaf that was not judged, with the score if it passes and if it fails, and a remedy."""

    leaf: Node
    if_passed: Score
    if_failed: Score
    reason: str
    remedy: str
    unusable_url: str | None
    """URL of a page without usable evidence, if the leaf was not judged because of it."""


class OpenLeaves:
    """Leaves that keep a score open, largest ``worth`` first, and their scores. CPU-bound.

    ``pages`` are those of the result.
    """

    def __init__(
        self, outline: Outline, effects: Mapping[str, Effect], pages: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        unjudged = [leaf for leaf in outline.leaves if leaf.outcome == Outcome.NOT_JUDGED]
        self.leaves = sorted(unjudged, key=lambda leaf: -effects[leaf.key].worth)
        self._outline = outline
        self._unusable_urls = {str(page["url"]) for page in pages if page["outcome"] not in _EVIDENCE_OUTCOMES}
        self._scores: dict[object, tuple[Score, Score]] = {}

    def with_scores(self, start: int = 0, count: int | None = None) -> list[OpenLeaf]:
        """Return ``count`` leaves (None: all) from position ``start``."""
        return [self._open_leaf(leaf) for leaf in self.leaves[start:][:count]]

    def _open_leaf(self, leaf: Node) -> OpenLeaf:
        # Siblings with equal weights have equal effects, except in sequences.
        parent, reason = leaf.parent, str(leaf.fields.get("reason"))
        is_step = parent is None or parent.strategy == Strategy.SEQUENTIAL
        same = leaf.key if is_step else (id(parent), leaf.weight, leaf.critical)
        if same not in self._scores:
            self._scores[same] = self._scores_of(leaf)
        if_failed, if_passed = self._scores[same]
        return OpenLeaf(
            leaf=leaf,
            if_failed=if_failed,
            if_passed=if_passed,
            reason=REASONS.get(reason, "It was not judged."),
            remedy=remedy_words(reason),
            unusable_url=_unusable_url(leaf, self._unusable_urls),
        )

    def _scores_of(self, leaf: Node) -> tuple[Score, Score]:
        """Return the scores if the leaf fails and if it passes. A score falls with penalties, and rises with others."""
        tree, path = self._outline, self._outline.path(leaf.key)
        if not tree.highest:  # a weight is invalid
            return (bounded_score(0.0, 1.0),) * 2
        low, high = tree.bounds_of(tree.root)
        highest = score_with(path, float(leaf.penalty), tree.highest, partial(leaf_points, tree.unknown, 1.0))
        lowest = score_with(path, float(not leaf.penalty), tree.lowest, partial(leaf_points, tree.unknown, 0.0))
        worse, better = bounded_score(low, highest), bounded_score(lowest, high)
        return (better, worse) if leaf.penalty else (worse, better)


def _unusable_url(leaf: Node, unusable_urls: Set[str]) -> str | None:
    if leaf.fields.get("reason") not in _PAGE_REASONS:
        return None
    sources = [str(url) for url in leaf.fields.get("sources") or ()]
    return next((url for url in sources if url in unusable_urls), sources[0] if sources else None)


router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

LeafQuery = Annotated[str | None, Query(max_length=2000)]
FormText = Annotated[str, Form()]
_CSV = ("id", "description", "outcome", "reason", "critical", "weight", "score", "effect", "worth", "claim",
        "reasoning", "sources", "quotes", "votes_for", "votes_against", "votes_lost", "prompt", "model", "usd",
        "blocked_by", "grounded", "signals", "settled", "settled_by", "settled_reason")  # fmt: skip


_PAGES_CSV = ("url", "page_id", "outcome", "captured_at", "source", "owner", "sha256")
_OPEN_CSV = ("id", "reason", "remedy", "low_if_failed", "high_if_failed", "low_if_passed", "high_if_passed")


class Table(StrEnum):
    """Tables of the page."""

    LEAVES = "leaves"
    OPEN = "open"
    PAGES = "pages"


@router.get("/results/{result_id}")
async def result(
    request: Request,
    result_id: IdPath,
    viewer: ViewerDep,
    leaf: LeafQuery = None,
    table: Table = Table.LEAVES,
    format: Format = Format.HTML,
) -> Response:
    """Show a result, with the panel of ``leaf``; as CSV, one of its tables."""
    if format is Format.CSV:
        cached = await viewer.dashboard.results.get(viewer.api, result_id)
        body = cached.result
        name = f"{body['agent_name']}-{body['task_id']}-{body['answer_name']}-{table}"
        return await csv_file(name, *await asyncio.to_thread(_table, table, body, cached.tree))
    origin = await viewer.api.get_or_none(f"/v1/results/{result_id}/origin")
    render = partial(_page, viewer, result_id, leaf, origin)
    if origin is None or leaf is not None:  # the status can be 404
        return await render()
    return await head_first(request, viewer, render, title=_title(origin["agent"], origin["task_id"]), here="home")


async def _page(viewer: Viewer, result_id: str, leaf: str | None, origin: Mapping[str, Any] | None) -> Response:
    cached = await viewer.dashboard.results.get(viewer.api, result_id)
    body, tree = cached.result, cached.tree
    chosen = _chosen(tree, leaf) if leaf is not None else tree.first_leaf
    answer, task = await asyncio.gather(
        viewer.api.text(f"/v1/results/{result_id}/answer"),
        viewer.api.get_or_none(f"/v1/tasks/{quote(str(body['task_id']), safe='')}"),
    )
    rendered = (
        RenderedAnswer(html="", marks=frozenset()) if answer is None else await viewer.dashboard.answers.render(answer)
    )
    key = None if chosen is None else chosen.key
    panel = None if key is None else await leaf_view(viewer.api, body, tree, key)
    return await viewer.page(
        "result.html", title=_title(body["agent_name"], body["task_id"]), here="home", result=body, tree=tree,
        json=f"/v1/results/{result_id}", csv=f"/results/{result_id}?format=csv", origin=origin, answer=rendered,
        panel=panel, chosen=key, rows=[TreeRows(tree, chosen=key).root()], script=script_of(body), task=task,
    )  # fmt: skip


def _title(agent: object, task_id: object) -> str:
    return f"{agent} · {task_id}"


@router.get("/results/{result_id}/leaf")
async def leaf(result_id: IdPath, viewer: ViewerDep, leaf: Annotated[str, Query(max_length=2000)]) -> Response:
    """Return the panel of one leaf. Panels are loaded on demand because a result can have thousands of leaves."""
    cached = await viewer.dashboard.results.get(viewer.api, result_id)
    panel = await leaf_view(viewer.api, cached.result, cached.tree, _chosen(cached.tree, leaf).key)
    return await viewer.fragment("leaf.html", panel=panel, result=cached.result, tree=cached.tree)


@router.get("/results/{result_id}/tree")
async def rows(
    result_id: IdPath,
    viewer: ViewerDep,
    leaf: LeafQuery = None,
    group: LeafQuery = None,
    at: Annotated[int, Query(ge=0)] = 0,
    earlier: bool = False,
    show: Show = Show.ALL,
    expand: bool = False,
) -> Response:
    """Return rows of the tree: from the root, with ``leaf`` in view, or children of ``group`` from position ``at``."""
    tree = (await viewer.dashboard.results.get(viewer.api, result_id)).tree
    chosen = None if leaf is None else _chosen(tree, leaf).key
    builder = TreeRows(tree, show=show, chosen=chosen, expand=expand)
    if group is None:
        tree_rows: Sequence[Row | Unloaded] = [builder.root()]
    else:
        tree_rows = builder.section(_chosen(tree, group).key, at, earlier=earlier)
    return await viewer.fragment("tree_rows.html", rows=tree_rows, tree=tree, result_id=result_id, chosen=chosen)


@router.get("/results/{result_id}/open")
async def open_claims(result_id: IdPath, viewer: ViewerDep, at: Annotated[int, Query(ge=0)] = 0) -> Response:
    """Return a part of the table of leaves that keep the score open, from position ``at``."""
    cached = await viewer.dashboard.results.get(viewer.api, result_id)
    origin = await viewer.api.get_or_none(f"/v1/results/{result_id}/origin")
    leaves, count = await asyncio.to_thread(_open_section, cached.result, cached.tree, at)
    after = at + len(leaves)
    return await viewer.fragment(
        "open_leaves.html", leaves=leaves, result=cached.result, origin=origin, at=at, count=count,
        previous=max(0, at - PER_PAGE) if at else None, following=after if after < count else None,
    )  # fmt: skip


@router.get("/results/{result_id}/lint")
async def lint(result_id: IdPath, viewer: ViewerDep) -> Response:
    """Return the findings of the rubric linter."""
    cached = await viewer.dashboard.results.get(viewer.api, result_id)
    findings = (await viewer.api.get(f"/v1/results/{result_id}/lint"))["items"]
    return await viewer.fragment("lint.html", lint=findings, result=cached.result, tree=cached.tree)


@router.get("/results/{result_id}/values")
async def values(result_id: IdPath, viewer: ViewerDep) -> Response:
    """Return the table of the values that were extracted from the answer."""
    cached = await viewer.dashboard.results.get(viewer.api, result_id)
    found = await asyncio.to_thread(extracted_values, cached.result, cached.tree.outline.leaves)
    return await viewer.fragment("values.html", values=found, most=MAX_VALUES, result=cached.result)


@router.post("/results/{result_id}/overrides", dependencies=[FormCheck])
async def override(
    result_id: IdPath,
    viewer: ViewerDep,
    leaf: FormText = "",
    outcome: FormText = "",
    reason: FormText = "",
    by: FormText = "",
) -> Response:
    """Override a leaf, then redirect to it. The API validates the fields."""
    body = {"leaf": leaf, "outcome": outcome, "reason": reason, "by": by}
    await viewer.api.post(f"/v1/results/{result_id}/overrides", body)
    return _redirect_to_leaf(result_id, leaf)


@router.post("/results/{result_id}/overrides/{override_id}/withdraw", dependencies=[FormCheck])
async def withdraw(
    result_id: IdPath,
    override_id: IdPath,
    viewer: ViewerDep,
    leaf: FormText = "",
    reason: FormText = "",
    by: FormText = "",
) -> Response:
    """Withdraw an override, then redirect to its leaf."""
    await viewer.api.post(f"/v1/results/{result_id}/overrides/{override_id}/withdraw", {"reason": reason, "by": by})
    return _redirect_to_leaf(result_id, leaf)


def _redirect_to_leaf(result_id: str, leaf: str) -> Response:
    return RedirectResponse(f"/results/{result_id}?{urlencode({'leaf': leaf})}#detail", 303, headers=HEADERS)


def _chosen(tree: Tree, key: str) -> Node:
    node = tree.outline.by_key.get(key)
    if node is None:
        raise NotFound(f"This result has no leaf {key!r}")
    return node


def _open_leaves(body: Mapping[str, Any], tree: Tree) -> OpenLeaves:
    return OpenLeaves(tree.outline, tree.effects, body.get("pages") or ())


def _open_section(body: Mapping[str, Any], tree: Tree, at: int) -> tuple[Sequence[OpenLeaf], int]:
    found = _open_leaves(body, tree)
    return found.with_scores(at, PER_PAGE), len(found.leaves)


def _table(table: Table, body: Mapping[str, Any], tree: Tree) -> tuple[Sequence[str], Iterable[list[Cell]]]:
    """Return the header and rows of one of the page's tables."""
    if table is Table.PAGES:
        return _PAGES_CSV, ([page.get(name) for name in _PAGES_CSV] for page in body["pages"])
    if table is Table.OPEN:
        return _OPEN_CSV, (
            [item.leaf.key, item.reason, item.remedy, item.if_failed.low, item.if_failed.high, item.if_passed.low,
             item.if_passed.high]
            for item in _open_leaves(body, tree).with_scores()
        )  # fmt: skip
    overrides = tree.overrides.in_force
    return _CSV, (_csv_row(node, tree.effects[node.key], overrides.get(node.key)) for node in tree.outline.leaves)


def _csv_row(node: Node, effect: Effect, override: Mapping[str, Any] | None) -> list[Cell]:
    fields = node.fields
    votes = [vote.get("result") for vote in fields.get("votes") or ()]
    return [
        node.key, node.desc, node.state, fields.get("reason"), node.critical, node.weight, node.score, effect.text,
        round(effect.worth, 6), fields.get("claim"), fields.get("reasoning"), " ".join(fields.get("sources") or ()),
        " | ".join(quote["text"] for quote in fields.get("quotes") or ()), votes.count(True), votes.count(False),
        votes.count(None), fields.get("prompt"), fields.get("model"), (fields.get("usage") or {}).get("usd"),
        fields.get("blocked_by"), fields.get("grounded"), " ".join(fields.get("signals") or ()),
        *(None if override is None else override[name] for name in ("outcome", "by", "reason")),
    ]  # fmt: skip
