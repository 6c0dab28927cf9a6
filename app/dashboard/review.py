"""Dashboard pages for review: doubtful verdicts, overrides, and the agreement of the judge and people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse, StreamingResponse

from app.csv_tables import Cell
from app.dashboard.downloads import Format, csv_file
from app.dashboard.effects import Effects
from app.dashboard.html_route import HtmlRoute
from app.dashboard.outline import Node, Outline, outline
from app.dashboard.rendering import HEADERS
from app.dashboard.result_cache import result_overrides
from app.dashboard.viewer import NAME_PATTERN, IdQuery, Viewer, ViewerDep, query_of
from app.dashboard.wording import signal_words
from rubrics.verdict import Outcome

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)

MAX_AGENTS = 20
MAX_RESULTS = 200
_HISTORY = 500
_MAX_SHOWN = 100
_PER_PAGE = 50
_MAX_CSV = 10_000
_CSV = ("agent", "task_id", "answer_name", "leaf", "description", "outcome", "doubt", "worth", "reasons", "settled",
        "settled_by", "result_id")  # fmt: skip
_OVERRIDES_CSV = ("id", "result_id", "agent", "task_id", "answer_name", "leaf", "outcome", "verdict", "model",
                  "in_force", "reason", "by", "key_owner", "withdraws", "created_at")  # fmt: skip
FIGURES = ("raw", "kappa", "ac1", "tpr", "tnr")
_COUNTS = ("leaves", "left_out", "true_positive", "false_positive", "false_negative", "true_negative")
_AGREEMENT_CSV = ("task_id", "model", *_COUNTS, *(f"{name}{end}" for name in FIGURES for end in ("", "_low", "_high")))
AgentQuery = Annotated[str, Query(pattern=f"^$|{NAME_PATTERN}")]


@router.get("/review")
async def review(
    viewer: ViewerDep, agent: AgentQuery = "", settled: bool = False, format: Format = Format.HTML
) -> Response:
    """List doubtful leaves of the newest results, highest rank first. ``settled``: include overridden leaves."""
    agents = await agents_of(viewer)
    origins = await newest_origins(viewer, [agent] if agent else agents)
    every = await _doubtful(viewer, origins)
    done = sum(one.override is not None for one in every)
    leaves = [one for one in every if settled or one.override is None]
    if format is Format.CSV:
        return await csv_file("review", _CSV, ([*_row(one)] for one in leaves))
    query = query_of({"agent": agent, "settled": "true" if settled else None})
    return await viewer.page(
        "review.html", title="Review", here="review", tab="doubt", json=f"/review?{query}",
        csv=f"/review?format=csv&{query}",
        found=leaves[:_MAX_SHOWN], total=len(leaves), examined=min(len(origins), MAX_RESULTS), available=len(origins),
        agents=sorted(agents), agent=agent, settled=settled, done=done,
    )  # fmt: skip


@router.get("/json/review")
async def review_json(viewer: ViewerDep, agent: AgentQuery = "", settled: bool = False) -> Response:
    """Return the doubtful leaves as JSON. The API has no such list because the dashboard computes the ranking."""
    origins = await newest_origins(viewer, [agent] if agent else await agents_of(viewer))
    leaves = [one for one in await _doubtful(viewer, origins) if settled or one.override is None]
    return JSONResponse({"items": [dict(zip(_CSV, _row(one), strict=True)) for one in leaves]}, headers=HEADERS)


@router.get("/review/overrides")
async def overrides(
    viewer: ViewerDep, agent: AgentQuery = "", cursor: IdQuery = None, format: Format = Format.HTML
) -> Response:
    """List overrides, newest first."""
    chosen = agent or None
    if format is Format.CSV:
        reviews = await viewer.api.items("/v1/reviews", at_most=_MAX_CSV, agent=chosen)
        return await csv_file("overrides", _OVERRIDES_CSV, ([one[name] for name in _OVERRIDES_CSV] for one in reviews))
    listed = await viewer.api.get("/v1/reviews", limit=_PER_PAGE, cursor=cursor, agent=chosen)
    return await viewer.page(
        "overrides_list.html", title="Overrides", here="review", tab="overrides",
        json=f"/v1/reviews?{query_of({'agent': agent})}",
        csv=f"/review/overrides?format=csv&agent={agent}", found=listed["items"], following=listed["next_cursor"],
        agents=sorted(await agents_of(viewer)), agent=agent,
    )  # fmt: skip


@router.get("/review/agreement")
async def agreement(viewer: ViewerDep, agent: AgentQuery = "", format: Format = Format.HTML) -> Response:
    """Show the agreement of the judge and people, by task and model."""
    body = await viewer.api.get("/v1/reviews/agreement", agent=agent or None)
    groups = [*body["items"], {"task_id": "all", "model": "all", **body["whole"]}]
    if format is Format.CSV:
        return await csv_file("agreement", _AGREEMENT_CSV, map(_agreement_row, groups))
    return await viewer.page(
        "agreement.html", title="Agreement", here="review", tab="agreement",
        json=f"/v1/reviews/agreement?{query_of({'agent': agent})}",
        csv=f"/review/agreement?format=csv&agent={agent}", groups=groups, whole=body["whole"],
        agents=sorted(await agents_of(viewer)), agent=agent,
    )  # fmt: skip


@router.get("/review/labels.jsonl")
async def labels(viewer: ViewerDep, agent: AgentQuery = "") -> Response:
    """Export overrides as labels for ``assay meta-eval``, in JSON Lines."""
    text = await viewer.api.text(f"/v1/reviews/export{f'?agent={agent}' if agent else ''}")
    headers = HEADERS | {"Content-Disposition": 'attachment; filename="labels.jsonl"'}
    return StreamingResponse(iter([(text or "").encode()]), media_type="application/x-ndjson", headers=headers)


def newest_of_each(history: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newest result of each answer. ``history`` is sorted newest first."""
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for origin in history:
        newest.setdefault((origin["task_id"], origin["answer_name"]), origin)
    return list(newest.values())


async def agents_of(viewer: Viewer) -> list[str]:
    """Return all agents that have a judged answer, best first."""
    return [str(item["agent_name"]) for item in (await viewer.api.get("/v1/leaderboard", mix_judges="true"))["items"]]


async def newest_origins(viewer: Viewer, agents: Iterable[str]) -> list[dict[str, Any]]:
    """Return the origin of the newest result of each answer of these agents (at most ``MAX_AGENTS``)."""
    origins: list[dict[str, Any]] = []
    for agent in list(agents)[:MAX_AGENTS]:
        origins += newest_of_each(await viewer.api.items(f"/v1/agents/{agent}/history", at_most=_HISTORY))
    return origins


async def _doubtful(viewer: Viewer, origins: list[dict[str, Any]]) -> list[DoubtfulLeaf]:
    """Return the doubtful leaves of these results, highest rank first."""
    leaves: list[DoubtfulLeaf] = []
    for origin in origins[:MAX_RESULTS]:
        result = await viewer.api.get(f"/v1/results/{origin['result_id']}")
        leaves += await asyncio.to_thread(doubtful_leaves, result)
    return sorted(leaves, key=lambda one: -one.rank)


def _row(one: DoubtfulLeaf) -> tuple[str | float | None, ...]:
    leaf, override = one.leaf, one.override
    return (
        one.agent, one.task_id, one.answer_name, leaf.key, leaf.desc, leaf.state, round(one.doubt, 3),
        round(one.worth, 6), "; ".join(one.reasons),
        *(None if override is None else override[name] for name in ("outcome", "by")), one.result_id,
    )  # fmt: skip


def _agreement_row(group: Mapping[str, Any]) -> list[Cell]:
    figures = [group[name][part] for name in FIGURES for part in ("value", "low", "high")]
    return [group["task_id"], group["model"], *(group[name] for name in _COUNTS), *figures]


_ORDERS = "orders_in_"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulLeaf:
    """Leaf with a doubtful verdict.

    ``doubt`` and ``worth`` (the share of the score at stake) are in 0..1, ``reasons`` explains the doubt in words, and
    ``override`` is the override in force.
    """

    result_id: str
    agent: str
    task_id: str
    answer_name: str
    leaf: Node
    doubt: float
    worth: float
    reasons: Sequence[str]
    override: Mapping[str, Any] | None

    @property
    def rank(self) -> float:
        return self.doubt * self.worth


def doubtful_leaves(result: Mapping[str, Any]) -> list[DoubtfulLeaf]:
    """Return the leaves of a result with a doubtful verdict, highest rank first."""
    tree: Outline = outline(result)
    worth = Effects(tree)
    overrides = result_overrides(result).in_force
    leaves = []
    for leaf in tree.leaves:
        reasons = list(_reasons(leaf))
        if not reasons:
            continue
        leaves.append(
            DoubtfulLeaf(
                result_id=str(result["id"]),
                agent=str(result["agent_name"]),
                task_id=str(result["task_id"]),
                answer_name=str(result["answer_name"]),
                leaf=leaf,
                doubt=max(doubt for doubt, _ in reasons),
                worth=worth[leaf.key].worth,
                reasons=[reason for _, reason in reasons],
                override=overrides.get(leaf.key),
            )
        )
    return sorted(leaves, key=lambda one: -one.rank)


def _reasons(leaf: Node) -> Iterable[tuple[float, str]]:
    """Yield (doubt, reason) pairs. Doubt is from 0 (none) to 1 (nothing is known)."""
    votes = [vote.get("result") for vote in leaf.fields.get("votes") or ()]
    yes, no = votes.count(True), votes.count(False)
    if leaf.outcome == Outcome.NOT_JUDGED:
        yield 1.0, "it was not judged"
    elif yes and no:
        yield 2 * min(yes, no) / len(votes), f"the votes are split, {yes} to {no}"
    signals = [str(signal) for signal in leaf.fields.get("signals") or ()]
    for signal in signals:
        yield 0.9 if signal.startswith(_ORDERS) else 0.4, _clause(signal_words(signal))
    if leaf.outcome == Outcome.PASSED and leaf.fields.get("grounded") is False:
        yield 0.6, "it has no valid quote" + ("" if leaf.penalty else ", so the strict score differs")
    if leaf.outcome == Outcome.UNDECIDED:
        yield 0.5, "the task script never settled it"


def _clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")
