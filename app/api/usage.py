"""Route for model usage: calls, tokens and cost by agent, task, model, role or day."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from app.api.access import ReaderDep, ServiceDep
from app.api.paging import ModelFilter, NameFilter
from app.storage.budgets import usage_by
from judges.llm.pricing import prices_as_of

router = APIRouter(prefix="/v1", tags=["usage"])


class By(StrEnum):
    """Columns to group usage by."""

    AGENT = "agent"
    TASK_ID = "task_id"
    MODEL = "model"
    ROLE = "role"
    DAY = "day"


class UsageOut(BaseModel):
    """Sums of one group."""

    agent: str | None = None
    task_id: str | None = None
    model: str | None = None
    role: str | None = None
    day: str | None = None
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None = Field(description="Cost; null if the price of a call is unknown")
    usd_known: float = Field(description="Cost of the calls with a known price")
    unpriced_calls: int = Field(description="Calls without a known price")


class UsageListOut(BaseModel):
    """Usage by group, highest cost first."""

    items: list[UsageOut]
    total: UsageOut
    prices_as_of: date


@router.get("/usage", response_model_exclude_unset=True)
async def get_usage(
    service: ServiceDep,
    caller: ReaderDep,
    by: Annotated[list[By] | None, Query(description="Column to group by; can be repeated")] = None,
    agent: NameFilter = None,
    task_id: NameFilter = None,
    model: ModelFilter = None,
    since: date | None = None,
    until: date | None = None,
) -> UsageListOut:
    """Return calls, tokens and cost of models by group. Failed and cancelled jobs are included."""
    groups = [one.value for one in dict.fromkeys(by or [By.AGENT, By.TASK_ID, By.MODEL, By.ROLE])]
    filters: dict[str, Any] = {"agent": agent, "task_id": task_id, "model": model, "since": since, "until": until}
    async with service.database.begin() as connection:
        rows = await usage_by(connection, groups, owner=caller.visible_owner, **filters)
    items = [UsageOut(**row) for row in rows]
    return UsageListOut(items=items, total=_total(items), prices_as_of=prices_as_of())


def _total(items: list[UsageOut]) -> UsageOut:
    unpriced = sum(item.unpriced_calls for item in items)
    known = sum(item.usd_known for item in items)
    return UsageOut(
        calls=sum(item.calls for item in items),
        input_tokens=sum(item.input_tokens for item in items),
        output_tokens=sum(item.output_tokens for item in items),
        usd=None if unpriced else known,
        usd_known=known,
        unpriced_calls=unpriced,
    )
