"""Route that estimates the calls, tokens and cost of judging answers."""

from __future__ import annotations

import asyncio
import json
from datetime import date
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from answers.submission import Answer
from app.access.keys import Caller
from app.api.access import ServiceDep, SubmitterDep
from app.api.models import SubmissionIn
from app.api.strict_json import StrictJsonRoute
from app.api.submissions import check_tasks_exist, checked_body
from app.engine.estimate import MAX_PAGES, MAX_PAST_RESULTS, AnswerFacts, PageSize, estimate_answer, total
from app.service import Service
from app.storage.listings import ListFilter
from app.storage.results import list_results
from cache.urls import canonical_key, is_fetchable
from judges.cpu_bound import cited_urls
from judges.llm.pricing import prices_as_of
from judges.llm.providers import parse_judge

router = APIRouter(prefix="/v1/estimates", tags=["estimates"], route_class=StrictJsonRoute)


class RangeOut(BaseModel):
    """Lowest and highest value."""

    low: float
    high: float


class TotalEstimateOut(BaseModel):
    """Estimated calls, tokens and cost. Cached replies are not subtracted."""

    calls: RangeOut
    input_tokens: RangeOut
    output_tokens: RangeOut
    usd: RangeOut | None = Field(description="Null if a price is unknown")


class AnswerEstimateOut(TotalEstimateOut):
    """Estimate of one answer."""

    answer: str
    basis: str = Field(description="What the estimate is based on, in words")


class EstimateOut(BaseModel):
    """Estimate of each answer, and the total."""

    model: str
    items: list[AnswerEstimateOut]
    total: TotalEstimateOut
    prices_as_of: date


@router.post("")
async def create_estimate(body: SubmissionIn, service: ServiceDep, caller: SubmitterDep) -> EstimateOut:
    """Estimate calls, tokens and cost of a submission. Calls no model, captures no page and stores nothing."""
    submission = await asyncio.to_thread(checked_body, body)
    await check_tasks_exist(service, [submission])
    model = str(parse_judge(submission.model or service.settings.model))
    past = await _past(service, caller, submission.task_id)
    estimates = [
        estimate_answer(await _facts(service, caller, answer, past), model, service.settings.prices)
        for answer in submission.answers
    ]
    items = [
        AnswerEstimateOut(answer=answer.name, **estimate.as_json())
        for answer, estimate in zip(submission.answers, estimates, strict=True)
    ]
    summed = TotalEstimateOut(**total(estimates).as_json())
    return EstimateOut(model=model, items=items, total=summed, prices_as_of=prices_as_of())


async def _past(service: Service, caller: Caller, task_id: str) -> list[dict[str, Any]]:
    async with service.database.begin() as connection:
        chosen = ListFilter(owner=caller.visible_owner, task_id=task_id)
        found = await list_results(connection, limit=MAX_PAST_RESULTS, chosen=chosen)
    return await asyncio.to_thread(lambda: [json.loads(one.body) for one in found])


async def _facts(service: Service, caller: Caller, answer: Answer, past: list[dict[str, Any]]) -> AnswerFacts:
    urls = [url for url in await cited_urls(answer.text) if is_fetchable(url)][:MAX_PAGES]
    captures = [await service.runtime.index.find(canonical_key(url), caller.owner) for url in urls]
    sizes = [None if capture is None else PageSize.of(capture) for capture in captures]
    return AnswerFacts(text=answer.text, sha256=answer.sha256, pages=sizes, past=past)
