"""Routes for submissions, and for estimates of what judging them takes."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Annotated, Any, Literal

import structlog
from fastapi import APIRouter, File, Form, Header, Query, Request, Response, UploadFile
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from answers.public_layout import read_archive
from answers.submission import Answer, Submission, checked_submission
from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep, SubmitterDep
from app.api.documents import document_text
from app.api.evidence import with_stored_evidence
from app.api.examples import sends
from app.api.jobs import WaitQuery, wait_for_end
from app.api.models import (
    AcceptedArchiveOut,
    AcceptedSubmissionOut,
    BudgetUsd,
    EvidencePolicyText,
    JobRefOut,
    ListOut,
    Priority,
    RecordModel,
    SubmissionChangeIn,
    SubmissionIn,
    SubmissionOut,
)
from app.api.paging import FilterDep, IdPath, JobCountsOut, PageRequest, pages_by_id
from app.api.problems import Problem, not_found
from app.api.request_fields import ModelText, StrictJsonRoute
from app.api.webhooks import new_webhook
from app.engine.estimate import MAX_PAGES, MAX_PAST_RESULTS, AnswerFacts, PageSize, estimate_answer, total
from app.engine.report_files import archive_converter
from app.errors import UnknownTask
from app.jobs.intake import JobOptions, SubmissionReceipt
from app.service import Service
from app.storage import jobs as rows
from app.storage.budgets import get_spent
from app.storage.idempotency import IdempotencyKey
from app.storage.listings import ListFilter, list_submission_ids
from app.storage.records import TERMINAL, JobStatus
from app.storage.results import list_results
from app.storage.retention import remove_submission, reviewed_results
from cache.blobs import BlobArea
from cache.urls import canonical_key, is_fetchable
from judges.cpu_bound import cited_urls
from judges.errors import JudgeNotLoadable
from judges.llm.pricing import prices_as_of
from judges.llm.providers import parse_judge
from judges.registry import Judge


class DeletedOut(BaseModel):
    """Numbers of deleted objects."""

    jobs: int
    results: int
    answers: int = Field(description="Answers that no other submission has")


class SubmissionSummaryOut(RecordModel):
    """A submission in a list."""

    id: str
    agent: str
    task_id: str
    model: str | None
    run: str | None
    created_at: datetime
    priority: int
    budget_usd: float | None
    job_counts: JobCountsOut
    jobs: list[JobRefOut] | None = Field(description="Null without include=jobs")
    metadata: dict[str, Any] | None = Field(description="Null without include=metadata")


router = APIRouter(prefix="/v1/submissions", tags=["submissions"], route_class=StrictJsonRoute)

_log = structlog.get_logger(__name__)
_SHORT_CHARS = 16 * 1024
_ARCHIVE_PRIORITY = -10
"""Default priority of archives, so that single answers need not wait for bulk work."""
KeyHeader = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255, pattern=r"^[!-~]([ -~]*[!-~])?$")
]


@router.post("", status_code=202, response_model=AcceptedSubmissionOut, responses=sends(202, "Location"))
async def create_submission(
    body: SubmissionIn, service: ServiceDep, caller: SubmitterDep, idempotency_key: KeyHeader = None
) -> Response:
    """Submit the answers of one agent to one task. Each answer becomes a job."""
    body = await with_texts(body)

    def checked() -> tuple[Submission, IdempotencyKey | None]:
        request = b"" if idempotency_key is None else json.dumps(body.model_dump(), sort_keys=True).encode()
        return checked_body(body), key_of_request(caller.owner, idempotency_key, "submission", request)

    # For a short submission, a thread costs more than the work.
    submission, key = checked() if _is_short(body) else await asyncio.to_thread(checked)
    await check_tasks_exist(service, [submission])
    options = JobOptions(priority=body.priority, budget_usd=body.budget_usd)
    webhook = None if body.webhook_url is None else new_webhook(service, caller, body.webhook_url)
    [submission] = await with_stored_evidence(service, caller.owner, [submission], key)

    def receipt(receipts: Sequence[SubmissionReceipt]) -> dict[str, Any]:
        added = {} if webhook is None else {"webhook": {"id": webhook.id, "url": webhook.url}}
        return receipts[0].as_json() | added

    accepted = await service.intake.accept(
        [submission], owner=caller.owner, respond=receipt, key=key, options=options, webhook=webhook
    )
    if webhook is not None and accepted["webhook"]["id"] == webhook.id:  # not a repeated request
        accepted["webhook"]["secret"] = webhook.secret
    return JSONResponse(accepted, 202, {"Location": f"/v1/submissions/{accepted['id']}"})


@router.get("")
async def list_submissions(
    service: ServiceDep,
    caller: ReaderDep,
    paging: Annotated[PageRequest, pages_by_id("sub")],
    chosen: FilterDep,
    status: Annotated[JobStatus | None, Query(description="At least one job has this status")] = None,
    include: Annotated[
        list[Literal["jobs", "metadata"]] | None, Query(description="Parts to add; can be repeated")
    ] = None,
) -> ListOut[SubmissionSummaryOut]:
    """List submissions of answers, newest first."""
    chosen = chosen.of_owner(caller.visible_owner)
    async with service.database.begin() as connection:
        found = await list_submission_ids(
            connection, chosen, limit=paging.limit + 1, before=paging.cursor, status=status
        )
        page, next_cursor = paging.split(found, str)
        records = await rows.get_submissions(connection, page)
        counts = await rows.job_counts(connection, page)
        jobs = await rows.jobs_of_submissions(connection, *page) if "jobs" in (include or ()) else None
    items = [
        SubmissionSummaryOut.of_record(
            record,
            job_counts=JobCountsOut(**counts[record.id]),
            jobs=None if jobs is None else [JobRefOut.of(job) for job in jobs if job.submission_id == record.id],
            metadata=record.metadata if "metadata" in (include or ()) else None,
        )
        for record in records
    ]
    return ListOut(items=items, next_cursor=next_cursor)


@router.post("/archive", status_code=202, response_model=AcceptedArchiveOut)
async def submit_archive(
    service: ServiceDep,
    caller: SubmitterDep,
    file: Annotated[UploadFile, File(description="zip or tar of <agent>/<task_id>/answer_k.md (.docx, .html, .pdf)")],
    model: Annotated[ModelText | None, Form()] = None,
    priority: Annotated[Priority, Form()] = _ARCHIVE_PRIORITY,
    budget_usd: Annotated[BudgetUsd | None, Form()] = None,
    evidence_policy: Annotated[EvidencePolicyText | None, Form()] = None,
    idempotency_key: KeyHeader = None,
) -> dict[str, Any]:
    """Submit the answers of many tasks in one archive: all of them or none. The budget applies to each submission."""
    submissions, digest = await asyncio.to_thread(_read_upload, file)
    submissions = [replace(each, model=model, evidence_policy=evidence_policy) for each in submissions]
    await check_tasks_exist(service, submissions)
    fields = f"{digest} {model} {priority} {budget_usd} {evidence_policy}"
    key = key_of_request(caller.owner, idempotency_key, "archive", fields.encode())
    submissions = await with_stored_evidence(service, caller.owner, submissions, key)
    options = JobOptions(priority=priority, budget_usd=budget_usd)
    return await service.intake.accept(submissions, owner=caller.owner, respond=receipts_json, key=key, options=options)


@router.get("/{submission_id}")
async def get_submission(
    submission_id: IdPath, request: Request, service: ServiceDep, caller: ReaderDep, wait: WaitQuery = 0
) -> SubmissionOut:
    """Return a submission with the status of its jobs. With `wait`, return when all of them have ended."""
    found = await _submission_out(service, submission_id, caller)
    unfinished = [job.id for job in found.jobs if job.status not in TERMINAL]
    if wait and unfinished:
        await wait_for_end(service, caller, request, unfinished, wait_s=wait)
        found = await _submission_out(service, submission_id, caller)
    return found


@router.patch("/{submission_id}")
async def update_submission(
    submission_id: IdPath, body: SubmissionChangeIn, service: ServiceDep, caller: SubmitterDep
) -> SubmissionOut:
    """Change the budget. If it is raised, jobs that are paused for this budget continue within 2 seconds."""
    async with service.database.begin() as connection:
        await rows.set_budget(connection, submission_id, body.budget_usd, owner=caller.visible_owner)
    return await _submission_out(service, submission_id, caller)


@router.post("/{submission_id}/cancel")
async def cancel_submission(submission_id: IdPath, service: ServiceDep, caller: SubmitterDep) -> SubmissionOut:
    """Cancel the unfinished jobs of a submission."""
    await _submission_out(service, submission_id, caller)
    await service.control.cancel_all(submission_id, owner=caller.visible_owner)
    return await _submission_out(service, submission_id, caller)


@router.delete("/{submission_id}")
async def delete_submission(
    submission_id: IdPath,
    service: ServiceDep,
    caller: SubmitterDep,
    force: Annotated[bool, Query(description="Also delete results that people reviewed")] = False,
) -> DeletedOut:
    """Delete a submission with its jobs, results and answers. Captured pages and the usage of models are kept."""
    async with service.database.begin() as connection:
        if await rows.get_submission(connection, submission_id, owner=caller.visible_owner) is None:
            raise not_found("submission")
        jobs = await rows.jobs_of_submissions(connection, submission_id, lock=True)
        if any(not job.has_ended for job in jobs):
            raise Problem(409, "CONFLICT", f"Jobs are unfinished: POST /v1/submissions/{submission_id}/cancel first")
        if not force:
            await _check_not_retained(connection, submission_id)
        removed = await remove_submission(connection, submission_id)
    for sha256 in removed.calls:
        await service.runtime.blobs.remove_from_area(BlobArea.CALLS, sha256)
    _log.info("submission deleted", submission_id=submission_id, by=caller.owner, jobs=removed.jobs)
    return DeletedOut(jobs=removed.jobs, results=removed.results, answers=removed.answers)


async def _check_not_retained(connection: Any, submission_id: str) -> None:
    """Raise Problem if people reviewed a result of the submission."""
    retained = {result_id: "people reviewed it" for result_id in await reviewed_results(connection, submission_id)}
    if retained:
        detail = "Results of this submission are retained; delete them with force=true"
        raise Problem(409, "RETAINED", detail, errors=sorted(retained.items()))


async def _submission_out(service: Service, submission_id: str, caller: Caller) -> SubmissionOut:
    async with service.database.begin() as connection:
        record = await rows.get_submission(connection, submission_id, owner=caller.visible_owner)
        if record is None:
            raise not_found("submission")
        jobs = await rows.jobs_of_submissions(connection, submission_id)
        return SubmissionOut.of(record, jobs, spent_usd=await get_spent(connection, submission_id))


def _is_short(body: SubmissionIn) -> bool:
    lengths = (_SHORT_CHARS if answer.text is None or answer.evidence else len(answer.text) for answer in body.answers)
    return sum(lengths) < _SHORT_CHARS


async def with_texts(body: SubmissionIn) -> SubmissionIn:
    """Return a request body with its documents as texts.

    Raises:
        InvalidSubmission: A document cannot be converted.
    """
    answers = [
        answer
        if answer.document is None
        else answer.model_copy(
            update={"text": await document_text(answer.document, f"answers.{place}.document"), "document": None}
        )
        for place, answer in enumerate(body.answers)
    ]
    return body.model_copy(update={"answers": answers})


def checked_body(body: SubmissionIn) -> Submission:
    """Return the submission of a request body."""
    return checked_submission(
        agent=body.agent,
        task_id=body.task_id,
        answers=[(answer.name, answer.content) for answer in body.answers],
        model=body.model,
        run=body.run,
        metadata=body.metadata,
        evidence=[[page.model_dump(exclude_none=True) for page in answer.evidence] for answer in body.answers],
        evidence_policy=body.evidence_policy,
    )


async def check_tasks_exist(service: Service, submissions: Sequence[Submission]) -> None:
    """Raise Problem for tasks without a task file. A broken task file counts: its job reports the error."""
    await service.runtime.reload_judges({submission.task_id for submission in submissions})
    has_several = len(submissions) > 1
    errors = []
    for submission in submissions:
        if not service.runtime.has_task(submission.task_id):
            location = f"{submission.agent}/{submission.task_id}" if has_several else "task_id"
            errors.append((location, f"task {submission.task_id!r} does not exist; GET /v1/tasks lists all tasks"))
    if errors:
        raise Problem(404, "UNKNOWN_TASK", "This task does not exist", errors=errors)


def usable_judge(service: Service, task_id: str, path: str = "task_id") -> Judge:
    """Return the judge of a task. ``path`` is the field of the request that names the task.

    Raises:
        Problem: The task does not exist, or its task file does not load.
    """
    try:
        return service.runtime.judge(task_id)
    except UnknownTask as error:
        detail = f"task {task_id!r} does not exist; GET /v1/tasks lists all tasks"
        raise Problem(404, "UNKNOWN_TASK", "This task does not exist", errors=[(path, detail)]) from error
    except JudgeNotLoadable as error:
        raise Problem(409, "JUDGE_BROKEN", f"The judge of task {task_id!r} does not load: {error}") from error


def _read_upload(upload: UploadFile) -> tuple[Sequence[Submission], str]:
    data = upload.file.read()
    return read_archive(io.BytesIO(data), archive_converter()), hashlib.sha256(data).hexdigest()


async def accept_job(
    service: Service,
    caller: Caller,
    response: Response,
    submission: Submission,
    options: JobOptions,
    *,
    key: IdempotencyKey | None = None,
    path: str,
    **fields: Any,
) -> dict[str, Any]:
    """Store a submission whose only job does not judge an answer.

    Returns the id of the job, its URLs (at ``path`` and at ``/v1/jobs``) and ``fields``, and sets the header
    ``Location``.
    """

    def receipt(receipts: Sequence[SubmissionReceipt]) -> dict[str, Any]:
        [(job_id, _)] = receipts[0].jobs
        urls = {"url": f"{path}/{job_id}", "job_url": f"/v1/jobs/{job_id}"}
        return {"id": job_id, "status": "queued", **urls, **fields}

    accepted = await service.intake.accept([submission], owner=caller.owner, respond=receipt, key=key, options=options)
    response.headers["Location"] = accepted["url"]
    return accepted


def key_of_request(owner: str, key: str | None, kind: str, request: bytes) -> IdempotencyKey | None:
    """Return the idempotency key of a request. ``kind`` and ``request`` must be the same if the key is used again."""
    if key is None:
        return None
    fingerprint = hashlib.sha256(kind.encode() + b"\0" + request).hexdigest()
    return IdempotencyKey(owner=owner, key=key, fingerprint=fingerprint)


def receipts_json(receipts: Sequence[SubmissionReceipt]) -> dict[str, Any]:
    return {"submissions": [receipt.as_json() for receipt in receipts]}


estimate_router = APIRouter(prefix="/v1/estimates", tags=["estimates"], route_class=StrictJsonRoute)


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


@estimate_router.post("")
async def create_estimate(body: SubmissionIn, service: ServiceDep, caller: SubmitterDep) -> EstimateOut:
    """Estimate calls, tokens and cost of a submission. Calls no model, captures no page and stores nothing."""
    submission = await asyncio.to_thread(checked_body, await with_texts(body))
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
