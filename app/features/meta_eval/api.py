"""API of stored bench reports. They contain figures and no claims, so every key with scope read sees them."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel

from app.api.access import ReaderDep, ServiceDep
from app.api.figures import OpenModel
from app.api.models import ListOut
from app.api.paging import PositionsPageDep
from app.api.problems import not_found
from app.features.meta_eval.stored_benches import read_benches

router = APIRouter(prefix="/v1/benches", tags=["benches"])


class BenchSummaryOut(BaseModel):
    """A bench without its figures."""

    id: str
    created_at: datetime
    rule: str
    sets: list[str]
    judges: list[str]


class BenchRowOut(OpenModel):
    """Figures of one judge on one label set."""

    set: str
    model: str
    verdicts: str
    n: int
    per_claim: dict[str, Any]


class BenchOut(OpenModel):
    """A bench report: one row per label set and judge."""

    id: str
    created_at: datetime
    rule: str
    sample: Any
    sets: list[dict[str, Any]]
    rows: list[BenchRowOut]


BENCH_ID = r"^bench_[0-9a-f]{24}$"


@router.get("")
async def list_benches(service: ServiceDep, caller: ReaderDep, paging: PositionsPageDep) -> ListOut[BenchSummaryOut]:
    """List the judge benches, newest first: id, time, rule, label sets and judges. The cursor is an offset."""
    reports = await asyncio.to_thread(read_benches, service.settings.data_dir)
    start = 0 if paging.cursor is None else int(paging.cursor)
    end = start + paging.limit
    return ListOut(
        items=[
            BenchSummaryOut(
                id=report["id"],
                created_at=report["created_at"],
                rule=report["rule"],
                sets=[one["name"] for one in report["sets"]],
                judges=list(dict.fromkeys(row["model"] for row in report["rows"])),
            )
            for report in reports[start:end]
        ],
        next_cursor=str(end) if end < len(reports) else None,
    )


@router.get("/{bench_id}", response_model=BenchOut)
async def get_bench(
    bench_id: Annotated[str, Path(pattern=BENCH_ID, json_schema_extra={"example": f"bench_{'0' * 24}"})],
    service: ServiceDep,
    caller: ReaderDep,
) -> dict[str, Any]:
    """Return a bench report: one row per label set and judge, with agreement and costs."""
    for report in await asyncio.to_thread(read_benches, service.settings.data_dir):
        if report["id"] == bench_id:
            return report
    raise not_found(f"bench {bench_id}")
