"""Routes for rescores. A rescore is a submission of stored answers, with one job per answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep, SubmitterDep
from app.api.examples import sends
from app.api.models import BudgetUsd, Priority
from app.api.paging import ID_PATTERN, NAME_PATTERN, IdPath
from app.api.problems import Problem, not_found
from app.api.request_fields import Model, StrictJsonRoute
from app.api.submissions import KeyHeader, key_of_request, usable_judge
from app.features.rescore import storage
from app.features.rescore.side_by_side import RescoredAnswer, comparison_json, rescored_answer
from app.jobs.intake import JobOptions, JudgeAgain
from app.service import Service
from app.storage.budgets import get_spent
from app.storage.jobs import get_submission, jobs_of_submissions
from app.storage.records import TERMINAL, Job, JobStatus, SubmissionRecord

router = APIRouter(prefix="/v1/rescores", tags=["rescores"], route_class=StrictJsonRoute)

MAX_ANSWERS = 1000
_BATCH = 20
"""Number of answers whose results are in memory at once."""
_SEVERAL = "*"
"""Agent or task of a rescore of several."""
_Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class RescoreIn(BaseModel):
    """Which answers to rescore: those of a task, of an agent, or of both; or those of ``jobs``."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {"task_id": "karrow_visit", "budget_usd": 0.5},
            "anyOf": [
                {"required": ["task_id"], "properties": {"task_id": {"type": "string"}, "jobs": {"type": "null"}}},
                {"required": ["agent"], "properties": {"agent": {"type": "string"}, "jobs": {"type": "null"}}},
                {
                    "required": ["jobs"],
                    "properties": {"jobs": {"type": "array"}, "task_id": {"type": "null"}, "agent": {"type": "null"}},
                },
            ],
        },
    )

    task_id: _Name | None = None
    agent: _Name | None = None
    jobs: list[Annotated[str, Field(pattern=ID_PATTERN)]] | None = Field(None, min_length=1, max_length=MAX_ANSWERS)
    model: Model | None = Field(None, description="Replaces the models of the earlier jobs")
    capture: bool = Field(False, description="Also capture the pages that are not stored")
    priority: Priority = 0
    budget_usd: BudgetUsd | None = None

    @model_validator(mode="after")
    def _either(self) -> RescoreIn:
        if (self.jobs is None) == (self.task_id is None and self.agent is None):
            raise ValueError("send either jobs, or task_id or agent or both")
        return self


class AcceptedRescoreOut(BaseModel):
    """Accepted rescore. ``answers`` is the number of answers, each of which becomes a job."""

    id: str
    url: str
    submission_url: str
    answers: int


class RescoreSummaryOut(BaseModel):
    """State of a rescore. ``done``: all jobs have ended. ``agent`` and ``task_id`` are null if there are several."""

    id: str
    agent: str | None
    task_id: str | None
    model: str | None
    created_at: datetime
    budget_usd: float | None
    done: bool
    jobs: dict[JobStatus, int] = Field(description="Number of jobs by status")


class RescoreOut(RescoreSummaryOut):
    """Rescore with old and new scores side by side."""

    spent_usd: float
    stored_pages: bool = Field(description="No page was captured: claims whose pages are not stored are not judged")
    answers: list[dict[str, Any]] = Field(
        description="Each answer with the scores ``before`` and ``after`` (null: no result), the number of leaves that "
        "were ``reused`` and ``asked`` again, and of those that ``flipped``"
    )
    agents: list[dict[str, Any]] = Field(description="Mean scores and ranks, over the answers that have both scores")
    agreement: dict[str, Any] = Field(
        description="Claims that both judges passed or failed, equal verdicts, and Cohen's kappa with its 95 % interval"
    )
    flips: list[dict[str, Any]] = Field(
        description="The first 1,000 leaves whose outcome differs, as in /v1/compare/flips, with ``agent``"
    )
    flipped: int = Field(description="Number of leaves whose outcome differs")
    usage: dict[str, Any]


@router.post("", status_code=202, response_model=AcceptedRescoreOut, responses=sends(202, "Location"))
async def create_rescore(
    body: RescoreIn, response: Response, service: ServiceDep, caller: SubmitterDep, idempotency_key: KeyHeader = None
) -> dict[str, Any]:
    """Judge stored answers of the caller again, with the current judges and stored pages.

    Verdicts whose inputs did not change are reused without a model request.
    """
    jobs = await _selected(service, caller, task_id=body.task_id, agent=body.agent, ids=body.jobs)
    tasks = {job.task_id for job in jobs}
    await service.runtime.reload_judges(tasks)
    for task_id in sorted(tasks):
        usable_judge(service, task_id)  # otherwise all of its jobs would fail
    rescore_id = service.runtime.ids.new(storage.ID_PREFIX)
    agents = {job.agent for job in jobs}
    accepted = await service.intake.judge_again(
        JudgeAgain(
            id=rescore_id,
            sources=[job.id for job in jobs],
            owner=caller.owner,
            agent=agents.pop() if len(agents) == 1 else _SEVERAL,
            task_id=tasks.pop() if len(tasks) == 1 else _SEVERAL,
            model=body.model,
            stored_pages=not body.capture,
        ),
        response={
            "id": rescore_id,
            "url": f"/v1/rescores/{rescore_id}",
            "submission_url": f"/v1/submissions/{rescore_id}",
            "answers": len(jobs),
        },
        key=key_of_request(
            caller.owner, idempotency_key, "rescore", json.dumps(body.model_dump(), sort_keys=True).encode()
        ),
        options=JobOptions(priority=body.priority, budget_usd=body.budget_usd),
    )
    response.headers["Location"] = accepted["url"]
    return accepted


@router.get("/{rescore_id}")
async def get_rescore(rescore_id: IdPath, service: ServiceDep, caller: ReaderDep) -> RescoreOut:
    """Return a rescore: old and new scores per answer and per agent, flipped leaves and ranks."""
    record, jobs = await _find(service, caller, rescore_id)
    async with service.database.begin() as connection:
        earlier = await storage.earlier_results(connection, rescore_id)
        spent = await get_spent(connection, rescore_id)
    answers: list[RescoredAnswer] = []
    for start in range(0, len(jobs), _BATCH):
        answers += await _compare(service, jobs[start : start + _BATCH], earlier)
    comparison = await asyncio.to_thread(comparison_json, answers)
    return RescoreOut(
        **_state(record, _counts(jobs)),
        **comparison,
        spent_usd=round(spent, 6),
        stored_pages=all(job.stored_pages for job in jobs),
    )


@router.post("/{rescore_id}/cancel")
async def cancel_rescore(rescore_id: IdPath, service: ServiceDep, caller: SubmitterDep) -> RescoreSummaryOut:
    """Cancel the unfinished jobs of a rescore. Their answers keep their earlier results."""
    await _find(service, caller, rescore_id)
    await service.control.cancel_all(rescore_id, owner=caller.visible_owner)
    record, jobs = await _find(service, caller, rescore_id)
    return RescoreSummaryOut(**_state(record, _counts(jobs)))


async def _selected(
    service: Service,
    caller: Caller,
    *,
    task_id: str | None = None,
    agent: str | None = None,
    ids: list[str] | None = None,
) -> list[storage.JudgedJob]:
    """Return the selected jobs of the caller.

    Raises:
        Problem: There is no such job, a job of ``ids`` is missing or not finished, or there are too many.
    """
    async with service.database.begin() as connection:
        jobs = await storage.newest_jobs(
            connection, owner=caller.owner, limit=MAX_ANSWERS + 1, task_id=task_id, agent=agent, ids=ids
        )
    missing = sorted(set(ids or ()) - {job.id for job in jobs})
    if missing:
        raise not_found(f"finished job {missing[0]!r} that judges an answer")
    if not jobs:
        raise not_found("finished job for this task and agent")
    if len(jobs) > MAX_ANSWERS:
        detail = f"The selection has more than {MAX_ANSWERS} answers: select an agent and a task"
        raise Problem(422, "TOO_MANY", detail)
    return jobs


async def _find(service: Service, caller: Caller, rescore_id: str) -> tuple[SubmissionRecord, list[Job]]:
    """Return a rescore that the caller can see, and its jobs. Raises Problem if there is none."""
    async with service.database.begin() as connection:
        record = await get_submission(connection, rescore_id, owner=caller.visible_owner)
        if record is None or not rescore_id.startswith(f"{storage.ID_PREFIX}_"):
            raise not_found("rescore")
        return record, await jobs_of_submissions(connection, rescore_id)


async def _compare(service: Service, jobs: Sequence[Job], earlier: Mapping[str, str]) -> list[RescoredAnswer]:
    pairs = [(job, earlier.get(job.id), job.result_id) for job in jobs]
    async with service.database.begin() as connection:
        wanted = {result_id for _, *ids in pairs for result_id in ids if result_id is not None}
        bodies = await storage.bodies_of(connection, wanted)
    return await asyncio.to_thread(
        lambda: [
            rescored_answer(job, bodies.get(before or ""), bodies.get(after or "")) for job, before, after in pairs
        ]
    )


def _counts(jobs: Sequence[Job]) -> dict[JobStatus, int]:
    return {status: sum(job.status is status for job in jobs) for status in JobStatus}


def _state(record: SubmissionRecord, counts: Mapping[JobStatus, int]) -> dict[str, Any]:
    return {
        "id": record.id,
        "agent": None if record.agent == _SEVERAL else record.agent,
        "task_id": None if record.task_id == _SEVERAL else record.task_id,
        "model": record.model,
        "created_at": record.created_at,
        "budget_usd": record.budget_usd,
        "done": all(status in TERMINAL or not number for status, number in counts.items()),
        "jobs": {status: counts.get(status, 0) for status in JobStatus},
    }
