"""API for the summary of an agent and the leaderboard of all agents."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter

from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep
from app.api.paging import NamePath
from app.api.problems import not_found
from app.features.comparison.api_sides import RunQuery, outcomes
from app.features.comparison.figures import full_summary
from app.service import Service
from app.storage import results as rows

router = APIRouter(prefix="/v1", tags=["results"])

_LEADERBOARD_LEAVES_OUT = ("per_run", "tasks", "without_result")


@router.get("/agents/{agent}/summary")
async def summary(agent: NamePath, service: ServiceDep, caller: ReaderDep, run: RunQuery = None) -> dict[str, Any]:
    """Return the averages of an agent over tasks and runs, with confidence intervals and counts of unjudged answers."""
    found = await _summary_of(service, caller, agent, run=run)
    if not found["num_answers"] and not found["unfinished"]:
        raise not_found("agent with judged answers")
    return found


@router.get("/leaderboard")
async def leaderboard(service: ServiceDep, caller: ReaderDep) -> dict[str, Any]:
    """List the averages of all agents, highest score first."""
    items = []
    async with service.database.begin() as connection:
        agents = await rows.judged_agents(connection, owner=caller.visible_owner)
    for agent in agents:
        whole = await _summary_of(service, caller, agent, resampled=False)
        items.append({name: value for name, value in whole.items() if name not in _LEADERBOARD_LEAVES_OUT})
    items.sort(key=lambda item: (-(item["avg_score"] or 0.0), item["agent_name"]))
    return {"items": items, "next_cursor": None}


async def _summary_of(
    service: Service, caller: Caller, agent: str, *, run: str | None = None, resampled: bool = True
) -> dict[str, Any]:
    """Return the summary of one agent. It is computed in a thread, after the transaction has ended."""
    async with service.database.begin() as connection:
        judged = await rows.answers_of(connection, agent, owner=caller.visible_owner, run=run)
        unfinished = await rows.unfinished_answers(connection, agent, owner=caller.visible_owner, run=run)
    return await asyncio.to_thread(
        lambda: full_summary(agent, outcomes(judged), unfinished=unfinished, resampled=resampled)
    )
