"""Dashboard page of a result: scores with bounds, answer, tree, the evidence of each leaf, and forms for overrides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from app.csv_tables import Cell
from app.dashboard.answer_html import RenderedAnswer
from app.dashboard.downloads import Format, csv_file
from app.dashboard.effects import Effect
from app.dashboard.errors import NotFound
from app.dashboard.html_route import HtmlRoute, head_first
from app.dashboard.jobs import IdPath
from app.dashboard.leaf_overrides import LeafOverride
from app.dashboard.leaf_view import leaf_view
from app.dashboard.open_leaves import PER_PAGE, OpenLeaf, open_leaves
from app.dashboard.outline import Node
from app.dashboard.rendering import HEADERS
from app.dashboard.result_cache import Tree
from app.dashboard.tree_rows import Row, Show, TreeRows, Unloaded
from app.dashboard.viewer import FormCheck, Viewer, ViewerDep
from rubrics.result_fields import script_of

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
    judged = body.get("tested_result", result_id)  # a test judges the answer of an earlier result
    answer, task = await asyncio.gather(
        viewer.api.text(f"/v1/results/{judged}/answer"),
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


def _open_leaves(body: Mapping[str, Any], tree: Tree) -> Sequence[OpenLeaf]:
    return open_leaves(tree.outline, tree.effects, body.get("pages") or ())


def _open_section(body: Mapping[str, Any], tree: Tree, at: int) -> tuple[Sequence[OpenLeaf], int]:
    leaves = _open_leaves(body, tree)
    return leaves[at : at + PER_PAGE], len(leaves)


def _table(table: Table, body: Mapping[str, Any], tree: Tree) -> tuple[Sequence[str], Iterable[list[Cell]]]:
    """Return the header and rows of one of the page's tables."""
    if table is Table.PAGES:
        return _PAGES_CSV, ([page.get(name) for name in _PAGES_CSV] for page in body["pages"])
    if table is Table.OPEN:
        return _OPEN_CSV, (
            [item.leaf.key, item.reason, item.remedy, item.if_failed.low, item.if_failed.high, item.if_passed.low,
             item.if_passed.high]
            for item in _open_leaves(body, tree)
        )  # fmt: skip
    overrides = tree.overrides.in_force
    return _CSV, (_csv_row(node, tree.effects[node.key], overrides.get(node.key)) for node in tree.outline.leaves)


def _csv_row(node: Node, effect: Effect, override: LeafOverride | None) -> list[Cell]:
    fields = node.fields
    votes = [vote.get("result") for vote in fields.get("votes") or ()]
    return [
        node.key, node.desc, node.outcome, fields.get("reason"), node.critical, node.weight, node.score, effect.text,
        round(effect.worth, 6), fields.get("claim"), fields.get("reasoning"), " ".join(fields.get("sources") or ()),
        " | ".join(quote["text"] for quote in fields.get("quotes") or ()), votes.count(True), votes.count(False),
        votes.count(None), fields.get("prompt"), fields.get("model"), (fields.get("usage") or {}).get("usd"),
        fields.get("blocked_by"), fields.get("grounded"), " ".join(fields.get("signals") or ()),
        *((override.outcome, override.by, override.reason) if override else (None, None, None)),
    ]  # fmt: skip
