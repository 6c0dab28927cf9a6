"""API for sensitivity analysis: of a result's score, of the order of two sides, and of a task's judge."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from fastapi import APIRouter

from app.api.access import ReaderDep, ServiceDep
from app.api.paging import IdPath, NameFilter, NamePath
from app.api.problems import not_found
from app.features.comparison.api_sides import SideQuery, load_side
from app.features.comparison.sensitivity_json import consistency_json, flips_json, order_json
from app.storage import results as rows

router = APIRouter(prefix="/v1", tags=["results"])

MAX_RESULTS = 500
"""Maximum number of results of a task. Older results are left out; ``older_left_out`` reports it."""


@router.get("/results/{result_id}/sensitivity")
async def result_sensitivity(result_id: IdPath, service: ServiceDep, caller: ReaderDep) -> dict[str, Any]:
    """List the leaves of a result by the change of its score if the leaf were flipped, largest change first."""
    async with service.database.begin() as connection:
        found = await rows.answer_of_result(connection, result_id, owner=caller.visible_owner)
    if found is None or found.body is None:
        raise not_found("result")
    body = found.body
    return await asyncio.to_thread(lambda: flips_json(json.loads(body)))


@router.get("/compare/sensitivity")
async def order_sensitivity(a: SideQuery, b: SideQuery, service: ServiceDep, caller: ReaderDep) -> dict[str, Any]:
    """Check whether the leading side keeps its lead if leaves, votes or weights change."""
    first = await load_side(service, caller, a, trees=True)
    second = await load_side(service, caller, b, trees=True)
    return await asyncio.to_thread(order_json, first, second)


@router.get("/tasks/{task_id}/consistency")
async def judge_consistency(
    task_id: NamePath, service: ServiceDep, caller: ReaderDep, agent: NameFilter = None
) -> dict[str, Any]:
    """Measure the self-consistency of a task's judge: split votes, and leaves with different outcomes."""
    async with service.database.begin() as connection:
        found = await rows.list_results(
            connection, limit=MAX_RESULTS + 1, owner=caller.visible_owner, agent=agent, task_id=task_id
        )
    if not found:
        raise not_found("task with results")
    bodies = [each.body for each in found[:MAX_RESULTS]]
    figures = await asyncio.to_thread(lambda: consistency_json(map(json.loads, bodies)))
    return {"task_id": task_id, **figures, "older_left_out": len(found) > MAX_RESULTS}
