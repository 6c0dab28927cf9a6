"""Routes for citation checks. A check is a job; its document is in the job's result."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Self

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from answers.provider_replies import answer_from_reply
from answers.submission import Submission
from app.api.access import ReaderDep, ServiceDep, SubmitterDep
from app.api.documents import DocumentIn, document_text
from app.api.examples import EXAMPLE_ID, sends
from app.api.models import BudgetUsd, JobStateOut, ListOut, Priority, ProgressOut, ScoreOut
from app.api.paging import IdPath, JobsPageDep
from app.api.problems import Problem, not_found
from app.api.request_fields import FETCHABLE_URL, NOT_BLANK, AnswerReply, Model, StrictJsonRoute
from app.api.results import JsonSchemaOut
from app.api.submissions import KeyHeader, accept_job, key_of_request
from app.features.check.jobs import as_submission
from app.features.check.report import CheckDocument, document_schema
from app.features.check.reports import MAX_REPORT_CHARS, ReportInput, ReportRejected, plan_check
from app.jobs.intake import JobOptions
from app.storage import jobs as rows
from app.storage.idempotency import IdempotencyKey
from app.storage.listings import ListFilter
from app.storage.records import Job, JobKind, JobStatus
from app.storage.results import get_result

_JOB = f"job_{EXAMPLE_ID}"
_DEFAULT_NAME = "report.md"
_NO_CONTROL_CHARACTERS = r"^[^\x00-\x1f\x7f]*$"


class CheckIn(BaseModel):
    """Report to check: its ``text``, the JSON ``reply`` of a model provider, a ``document``, or the ``url`` of a
    published page."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "example": {
                "name": "harbor.md",
                "text": "The harbor has 40 berths [1].\n\nReferences:\n[1] https://example.org/harbor",
                "budget_usd": 0.5,
            },
            "oneOf": [
                {"required": ["text"], "properties": {"text": {"type": "string"}}},
                {"required": ["reply"], "properties": {"reply": {"type": "object"}}},
                {"required": ["document"], "properties": {"document": {"type": "object"}}},
                {"required": ["url"], "properties": {"url": {"type": "string"}}},
            ],
        },
    )

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=_NO_CONTROL_CHARACTERS)] = _DEFAULT_NAME
    text: Annotated[
        str | None,
        Field(max_length=MAX_REPORT_CHARS, pattern=NOT_BLANK, description="Markdown or plain text"),
    ] = None
    reply: AnswerReply | None = None
    document: DocumentIn | None = None
    url: Annotated[str | None, Field(max_length=2_000, pattern=FETCHABLE_URL)] = None
    model: Model | None = None
    budget_usd: BudgetUsd | None = None
    priority: Priority = 0

    @model_validator(mode="after")
    def _one(self) -> CheckIn:
        if sum(each is not None for each in (self.text, self.reply, self.document, self.url)) != 1:
            raise ValueError("send exactly one of text, reply, document and url")
        return self


class AcceptedCheckOut(BaseModel):
    """Accepted check. ``id`` is the id of its job."""

    id: str
    status: JobStatus
    url: str
    job_url: str
    citations: int | None = Field(description="Citation marks of the report; null if it is a published page")
    pages: int | None = Field(description="Distinct pages that they cite")


class CheckSummaryOut(JobStateOut):
    """State of a check. ``document`` is only in the response of a single check."""

    name: str
    progress: ProgressOut
    score: ScoreOut | None = Field(description="Citation precision (Liu et al. 2023); null: no result, or no citations")
    job_url: str

    @classmethod
    def of(cls, job: Job, **others: object) -> Self:
        return cls.of_record(job, name=job.answer_name, progress=job, job_url=f"/v1/jobs/{job.id}", **others)


class CheckOut(CheckSummaryOut):
    """One check, with its document when it is finished or stopped by its budget."""

    document: CheckDocument | None = Field(
        description="Null until the check has a result. Its JSON Schema is at /v1/schema/check.json"
    )


router = APIRouter(prefix="/v1", tags=["checks"], route_class=StrictJsonRoute)


@router.post("/checks", status_code=202, response_model=AcceptedCheckOut, responses=sends(202, "Location"))
async def create_check(
    body: CheckIn, response: Response, service: ServiceDep, caller: SubmitterDep, idempotency_key: KeyHeader = None
) -> dict[str, Any]:
    """Check whether the sources of a report support its statements. The check becomes a job."""
    if body.document is not None:
        text = await document_text(body.document, "document")
        name = body.document.name if body.name == _DEFAULT_NAME else body.name
        body = body.model_copy(update={"text": text, "document": None, "name": name})

    def prepared() -> tuple[Submission, IdempotencyKey | None, dict[str, int | None]]:
        options, counts = _options(body)
        request = b"" if idempotency_key is None else body.model_dump_json().encode()
        key = key_of_request(caller.owner, idempotency_key, JobKind.CHECK.value, request)
        return as_submission(options, model=body.model), key, counts

    submission, key, counts = await asyncio.to_thread(prepared)
    return await accept_job(
        service,
        caller,
        response,
        submission,
        JobOptions(priority=body.priority, budget_usd=body.budget_usd, kind=JobKind.CHECK),
        key=key,
        path="/v1/checks",
        **counts,
    )


@router.get("/checks")
async def list_checks(service: ServiceDep, caller: ReaderDep, paging: JobsPageDep) -> ListOut[CheckSummaryOut]:
    """List the checks, newest first, without their documents."""
    async with service.database.begin() as connection:
        newest = await rows.list_jobs(
            connection,
            limit=paging.limit + 1,
            chosen=ListFilter(owner=caller.visible_owner),
            before=paging.cursor,
            kind=JobKind.CHECK,
        )
        page, next_cursor = paging.split(newest, lambda job: job.id)
        scores = await rows.scores_of(connection, page)
    items = [CheckSummaryOut.of(job, score=scores.get(job.result_id)) for job in page]
    return ListOut(items=items, next_cursor=next_cursor)


@router.get("/checks/{check_id}")
async def get_check(check_id: IdPath, service: ServiceDep, caller: ReaderDep) -> CheckOut:
    """Return a check, with its document if it has a result."""
    async with service.database.begin() as connection:
        job = await rows.get_job(connection, check_id, owner=caller.visible_owner)
        if job is None or job.kind is not JobKind.CHECK:
            raise not_found("check")
        result = None if job.result_id is None else await get_result(connection, job.result_id)
        scores = await rows.scores_of(connection, [job])
    document = None
    if result is not None:
        document = await asyncio.to_thread(
            lambda: CheckDocument.model_validate_json(json.dumps(json.loads(result.body)["document"]))
        )
    return CheckOut.of(job, score=scores.get(job.result_id), document=document)


@router.get("/schema/check.json", response_model=JsonSchemaOut)
async def get_check_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document of a check."""
    return document_schema()


def _options(body: CheckIn) -> tuple[dict[str, Any], dict[str, int | None]]:
    """Return the options of the job, and the numbers of citations and pages. Takes up to a second per MB.

    Raises:
        InvalidSubmission: The reply is invalid.
        Problem: The report cannot be checked.
    """
    options: dict[str, Any] = {"name": body.name, "budget_usd": body.budget_usd}
    if body.url is not None:
        url = body.url.strip()
        return {**options, "name": url if body.name == _DEFAULT_NAME else body.name, "url": url}, {
            "citations": None,
            "pages": None,
        }
    text = body.text if body.reply is None else answer_from_reply(body.reply, path="reply").text
    try:
        plan = plan_check(ReportInput(name=body.name, text=text or ""))
    except ReportRejected as error:
        field = "text" if body.reply is None else "reply"
        raise Problem(422, "REPORT_REJECTED", "The report cannot be checked", errors=[(field, str(error))]) from error
    return {**options, "text": text}, {"citations": len(plan.binding.marks), "pages": len(plan.urls)}
