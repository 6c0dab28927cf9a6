"""Route that estimates the calls, tokens and cost of judging new answers or of retrying jobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator

from answers.submission import Answer, checked_submission
from app.access.keys import Caller
from app.api.access import ServiceDep, SubmitterDep
from app.api.models import AnswerIn
from app.api.paging import ID_PATTERN
from app.api.problems import Problem, not_found
from app.api.request_fields import Model, Name
from app.api.strict_json import StrictJsonRoute
from app.engine.forecasting import ForecastRequest, checkpoint_lookup, forecast_all, forecast_runtime
from app.jobs.attempt_accounting import checkpointed_replies
from app.service import Service
from app.storage.jobs import answer_text, get_job
from app.storage.listings import ListFilter
from app.storage.records import JobKind
from app.storage.results import earlier_result, list_results
from judges.analysis.forecasts.forecast import EMPTY_FORECAST
from judges.llm.pricing import prices_as_of
from judges.llm.providers import parse_judge

router = APIRouter(prefix="/v1/forecasts", tags=["forecasts"], route_class=StrictJsonRoute)

MAX_ANSWERS_PER_FORECAST = 20
_PAST_RUNS = 20
_TIMEOUT_S = 120.0


class ForecastIn(BaseModel):
    """Either ``jobs`` to retry, or the ``answers`` of an agent to a task as in a submission."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"jobs": ["job_01"]},
            "oneOf": [
                {
                    "required": ["jobs"],
                    "properties": {
                        "jobs": {"type": "array"},
                        "agent": {"type": "null"},
                        "task_id": {"type": "null"},
                        "answers": {"type": "null"},
                    },
                },
                {
                    "required": ["agent", "task_id", "answers"],
                    "properties": {
                        "jobs": {"type": "null"},
                        "agent": {"type": "string"},
                        "task_id": {"type": "string"},
                        "answers": {"type": "array"},
                    },
                },
            ],
        },
    )

    jobs: list[Annotated[str, Field(pattern=ID_PATTERN)]] | None = Field(
        None, min_length=1, max_length=MAX_ANSWERS_PER_FORECAST
    )
    agent: Name | None = None
    task_id: Name | None = None
    answers: list[AnswerIn] | None = Field(None, min_length=1, max_length=MAX_ANSWERS_PER_FORECAST)
    model: Model | None = Field(None, description="provider/model; replaces the model of ``jobs``")
    stored_pages: bool = Field(False, description="No page is captured, as in a rescore")

    @model_validator(mode="after")
    def _either(self) -> ForecastIn:
        answer_fields = (self.agent, self.task_id, self.answers)
        required = (None, None, None) if self.jobs is not None else answer_fields
        if answer_fields == required and (self.jobs is not None or None not in answer_fields):
            return self
        raise ValueError("send either jobs, or agent, task_id and answers")


class ForecastItemOut(BaseModel):
    """Forecast of one answer.

    Each value of ``forecast`` is ``{low, expected, high}``, or null if a price is unknown.
    """

    job_id: str | None
    agent: str
    task_id: str
    answer: str
    model: str
    forecast: dict[str, Any]


class ForecastOut(BaseModel):
    """Forecast of each answer, and the total."""

    items: list[ForecastItemOut]
    total: dict[str, Any]
    prices_as_of: date


@router.post("")
async def create_forecast(body: ForecastIn, service: ServiceDep, caller: SubmitterDep) -> ForecastOut:
    """Estimate calls, tokens and cost in US dollars. Calls no model, captures no page and stores nothing."""
    if service.forecasts.locked():
        detail = "The service is already computing a forecast; try again later"
        raise Problem(429, "BUSY", detail, headers={"Retry-After": "5"})
    async with service.forecasts:
        requests = await (
            _job_requests(service, caller, body) if body.jobs is not None else _answer_requests(service, caller, body)
        )
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                forecasts = await forecast_all(forecast_runtime(service.runtime), [request for _, request in requests])
        except TimeoutError as late:
            detail = "The forecast took too long; request fewer answers at once"
            raise Problem(503, "TOO_SLOW", detail, headers={"Retry-After": "5"}) from late
    items = [
        ForecastItemOut(
            job_id=job_id,
            agent=request.agent,
            task_id=request.judge.task,
            answer=request.answer.name,
            model=request.model,
            forecast=one.as_json(),
        )
        for (job_id, request), one in zip(requests, forecasts, strict=True)
    ]
    return ForecastOut(items=items, total=sum(forecasts, EMPTY_FORECAST).as_json(), prices_as_of=prices_as_of())


async def _job_requests(service: Service, caller: Caller, body: ForecastIn) -> list[tuple[str | None, ForecastRequest]]:
    requests: list[tuple[str | None, ForecastRequest]] = []
    for job_id in dict.fromkeys(body.jobs or ()):
        async with service.database.begin() as connection:
            job = await get_job(connection, job_id, owner=caller.visible_owner)
            if job is None or job.kind is not JobKind.ANSWER:
                raise not_found(f"job {job_id!r} that judges an answer")
            text = await answer_text(connection, job.answer_sha256)
            last = await earlier_result(connection, job)
            replies = await checkpointed_replies(connection, job)
        await service.runtime.reload_judges([job.task_id])
        answer = Answer(name=job.answer_name, text=text)
        past = await _past(service, caller, job.task_id, last)
        model = body.model or job.model or service.settings.model
        request = ForecastRequest(
            judge=service.runtime.judge(job.task_id),
            agent=job.agent,
            answer=answer,
            model=str(parse_judge(model)),
            owner=job.owner,
            past=past,
            stored_reply=checkpoint_lookup(replies),
            stored_pages=body.stored_pages,
        )
        requests.append((job.id, request))
    return requests


async def _answer_requests(
    service: Service, caller: Caller, body: ForecastIn
) -> list[tuple[str | None, ForecastRequest]]:
    submission = await asyncio.to_thread(
        checked_submission,
        agent=body.agent or "",
        task_id=body.task_id or "",
        answers=[(answer.name, answer.content) for answer in body.answers or ()],
        model=body.model,
    )
    await service.runtime.reload_judges([submission.task_id])
    if not service.runtime.has_task(submission.task_id):
        detail = f"task {submission.task_id!r} does not exist; GET /v1/tasks lists all tasks"
        raise Problem(404, "UNKNOWN_TASK", "This task has no judge", errors=[("task_id", detail)])
    past = await _past(service, caller, submission.task_id, None)
    model = str(parse_judge(submission.model or service.settings.model))
    judge = service.runtime.judge(submission.task_id)
    return [
        (
            None,
            ForecastRequest(
                judge=judge,
                agent=submission.agent,
                answer=answer,
                model=model,
                owner=caller.owner,
                past=past,
                stored_pages=body.stored_pages,
            ),
        )
        for answer in submission.answers
    ]


async def _past(service: Service, caller: Caller, task_id: str, last: str | None) -> Sequence[dict[str, Any]]:
    """Return past results of a task, oldest first, followed by the last result of the answer itself."""
    async with service.database.begin() as connection:
        results = await list_results(
            connection, limit=_PAST_RUNS, chosen=ListFilter(owner=caller.visible_owner, task_id=task_id)
        )
    bodies = [one.body for one in reversed(results) if one.body != last] + ([] if last is None else [last])
    return await asyncio.to_thread(lambda: [json.loads(body) for body in bodies])
