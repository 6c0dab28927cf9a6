"""Agents, runs and results against each other, on the tasks that both were judged on."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.access import ReaderDep, ServiceDep
from app.api.sides import SIDE, SideQuery, side_of
from app.compared import comparison_json

router = APIRouter(prefix="/v1/compare", tags=["results"])

MOST_SIDES = 20
Others = Annotated[
    list[Annotated[str, Query(pattern=SIDE)]],
    Query(min_length=1, max_length=MOST_SIDES, description="What is set against a; named again for each further one"),
]


@router.get("")
async def compare(a: SideQuery, b: Others, service: ServiceDep, caller: ReaderDep) -> dict[str, Any]:
    """How far each of ``b`` is from ``a``, task by task, and whether that can be chance."""
    first = await side_of(service, caller, a)
    others = [await side_of(service, caller, name) for name in b]
    return await asyncio.to_thread(comparison_json, first, others)
