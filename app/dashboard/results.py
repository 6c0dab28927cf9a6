"""Dashboard page of a result: scores with bounds, answer, tree, the evidence of each leaf, and forms for overrides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import RedirectResponse

from app.csv_tables import Cell
from app.dashboard.answer_html import RenderedAnswer
from app.dashboard.downloads import Format, csv_file
from app.dashboard.effects import Effect
from app.dashboard.errors import NotFound
from app.dashboard.html_route import HtmlRoute
from app.dashboard.jobs import IdPath
from app.dashboard.leaf_overrides import LeafOverride
from app.dashboard.leaf_view import leaf_view
from app.dashboard.outline import Node
from app.dashboard.rendering import HEADERS
from app.dashboard.result_cache import Tree
from app.dashboard.viewer import FormCheck, ViewerDep
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
    result_id: IdPath,
    viewer: ViewerDep,
    leaf: LeafQuery = None,
    table: Table = Table.LEAVES,
    format: Format = Format.HTML,
) -> Response:
    """Show a result, with the panel of ``leaf``; as CSV, one of its tables."""
    cached = await viewer.dashboard.results.get(viewer.api, result_id)
    body, tree = cached.result, cached.tree
    if format is Format.CSV:
        name = f"{body['agent_name']}-{body['task_id']}-{body['answer_name']}-{table}"
        return await csv_file(name, *_table(table, body, tree))
    if leaf is not None and leaf not in tree.outline.by_key:
        raise NotFound(f"This result has no leaf {leaf!r}")
    judged = body.get("tested_result", result_id)  # a test judges the answer of an earlier result
    origin, answer, lint, task = await asyncio.gather(
        viewer.api.get_or_none(f"/v1/results/{result_id}/origin"),
        viewer.api.text(f"/v1/results/{judged}/answer"),
        viewer.api.get(f"/v1/results/{result_id}/lint"),
        viewer.api.get_or_none(f"/v1/tasks/{quote(str(body['task_id']), safe='')}"),
    )
    rendered = (
        RenderedAnswer(html="", marks=frozenset()) if answer is None else await viewer.dashboard.answers.render(answer)
    )
    panel = None if leaf is None else await leaf_view(viewer.api, body, tree, leaf)
    return await viewer.page(
        "result.html", title=f"{body['agent_name']} · {body['task_id']}", here="home", result=body, tree=tree,
        json=f"/v1/results/{result_id}", csv=f"/results/{result_id}?format=csv", origin=origin, answer=rendered,
        panel=panel, chosen=leaf, lint=lint["items"], script=script_of(body), task=task,
    )  # fmt: skip


@router.get("/results/{result_id}/leaf")
async def leaf(result_id: IdPath, viewer: ViewerDep, leaf: Annotated[str, Query(max_length=2000)]) -> Response:
    """Return the panel of one leaf. Panels are loaded on demand because a result can have hundreds of leaves."""
    cached = await viewer.dashboard.results.get(viewer.api, result_id)
    if leaf not in cached.tree.outline.by_key:
        raise NotFound(f"This result has no leaf {leaf!r}")
    panel = await leaf_view(viewer.api, cached.result, cached.tree, leaf)
    return await viewer.fragment("leaf.html", panel=panel, result=cached.result, tree=cached.tree)


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


def _table(table: Table, body: Mapping[str, Any], tree: Tree) -> tuple[Sequence[str], Iterable[list[Cell]]]:
    """Return the header and rows of one of the page's tables."""
    if table is Table.PAGES:
        return _PAGES_CSV, ([page.get(name) for name in _PAGES_CSV] for page in body["pages"])
    if table is Table.OPEN:
        return _OPEN_CSV, (
            [item.leaf.key, item.reason, item.remedy, item.if_failed.low, item.if_failed.high, item.if_passed.low,
             item.if_passed.high]
            for item in tree.open_leaves
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
