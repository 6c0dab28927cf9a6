"""Agents, runs and results against each other, on the tasks that both were judged on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut
from app.api.paging import PositionSliceDep
from app.features.comparison.api_models import FlipOut
from app.features.comparison.api_sides import SIDE, SideQuery, side_of
from app.features.comparison.compared import comparison_json
from app.features.comparison.flips import Flip, add_flips, flips

router = APIRouter(prefix="/v1/compare", tags=["results"])

MOST_SIDES = 20
MOST_FLIPS = 1000
"""In one answer, shared out evenly among what is compared; ``/v1/compare/flips`` has all of them."""
Others = Annotated[
    list[Annotated[str, Query(pattern=SIDE)]],
    Query(min_length=1, max_length=MOST_SIDES, description="What is set against a; named again for each further one"),
]


@router.get("")
async def compare(a: SideQuery, b: Others, service: ServiceDep, caller: ReaderDep) -> dict[str, Any]:
    """How far each of ``b`` is from ``a``, task by task; whether that can be chance; which leaves flipped, and why."""
    first = await side_of(service, caller, a, leaves=True)
    others, flipped = [], list[list[Flip]]()
    for name in b:
        other = await side_of(service, caller, name, leaves=True)
        flipped.append(await asyncio.to_thread(flips, first.judged, other.judged))
        others.append(replace(other, judged=()))  # twenty sides' leaves at once would fill the memory
    found = await asyncio.to_thread(comparison_json, first, others)
    for comparison, of_it in zip(found["comparisons"], flipped, strict=True):
        add_flips(comparison, of_it, at_most=MOST_FLIPS // len(b))
    return found


@router.get("/flips")
async def flipped_leaves(
    a: SideQuery, b: SideQuery, service: ServiceDep, caller: ReaderDep, part: PositionSliceDep
) -> ListOut[FlipOut]:
    """Every leaf that did not come out the same on both sides, and why. The cursor is a position."""
    start = 0 if part.cursor is None else int(part.cursor)
    first = await side_of(service, caller, a, leaves=True)
    second = await side_of(service, caller, b, leaves=True)
    found = await asyncio.to_thread(flips, first.judged, second.judged)
    end = start + part.limit
    return ListOut(
        items=[FlipOut.of(flip) for flip in found[start:end]], next_cursor=str(end) if end < len(found) else None
    )
