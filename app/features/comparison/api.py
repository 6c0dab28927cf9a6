"""API to compare agents, runs and results on the tasks they share."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut
from app.api.paging import PositionPageRequestDep
from app.features.comparison.api_sides import SIDE, SideQuery, load_side
from app.features.comparison.flips import Cause, Flip, add_flips, flips
from app.features.comparison.paired_comparison import comparison_json


class FlipCauseOut(BaseModel):
    """Cause of a flip: something that differs between the two sides."""

    cause: Cause
    detail: str


class FlipOut(BaseModel):
    """Leaf whose outcome differs. An outcome is null if the tree of that side has no such leaf."""

    task_id: str
    answer_name: str
    leaf: str
    description: str = Field(description="First 500 characters of the description")
    before: str | None
    after: str | None
    causes: list[FlipCauseOut]
    result_before: str
    result_after: str

    @classmethod
    def of(cls, flip: Flip) -> FlipOut:
        return cls.model_validate(flip.json())


router = APIRouter(prefix="/v1/compare", tags=["results"])

MAX_SIDES = 20
MAX_FLIPS = 1000
"""Maximum per response, divided evenly among the compared sides. ``/v1/compare/flips`` returns all flips."""
Others = Annotated[
    list[Annotated[str, Query(pattern=SIDE)]],
    Query(
        min_length=1, max_length=MAX_SIDES, description="Side to compare with a; repeat the parameter for more sides"
    ),
]


@router.get("")
async def compare(a: SideQuery, b: Others, service: ServiceDep, caller: ReaderDep) -> dict[str, Any]:
    """Compare each ``b`` with ``a`` task by task: differences, their significance, and which leaves flipped and why."""
    first = await load_side(service, caller, a, leaves=True)
    others, flipped = [], list[list[Flip]]()
    for name in b:
        other = await load_side(service, caller, name, leaves=True)
        flipped.append(await asyncio.to_thread(flips, first.judged, other.judged))
        others.append(replace(other, judged=()))  # the leaves of all sides together would use too much memory
    found = await asyncio.to_thread(comparison_json, first, others)
    for comparison, side_flips in zip(found["comparisons"], flipped, strict=True):
        add_flips(comparison, side_flips, at_most=MAX_FLIPS // len(b))
    return found


@router.get("/flips")
async def flipped_leaves(
    a: SideQuery, b: SideQuery, service: ServiceDep, caller: ReaderDep, part: PositionPageRequestDep
) -> ListOut[FlipOut]:
    """List all leaves whose outcome differs between the two sides, with the causes. The cursor is an offset."""
    start = 0 if part.cursor is None else int(part.cursor)
    first = await load_side(service, caller, a, leaves=True)
    second = await load_side(service, caller, b, leaves=True)
    found = await asyncio.to_thread(flips, first.judged, second.judged)
    end = start + part.limit
    return ListOut(
        items=[FlipOut.of(flip) for flip in found[start:end]], next_cursor=str(end) if end < len(found) else None
    )
