"""Handing in answers."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Header, Response, UploadFile

from answers.bundle import read_archive
from answers.submission import Submission, checked_submission
from app.api.access import OwnerDep, ServiceDep
from app.api.models import AcceptedArchiveOut, AcceptedOut, SubmissionIn, SubmissionOut
from app.api.paging import IdPath
from app.api.problems import Problem, not_found
from app.api.strict_json import StrictJsonRoute
from app.jobs.intake import Receipt
from app.service import Service
from app.storage.idempotency import IdempotencyKey
from app.storage.jobs import jobs_of_submission
from app.storage.submissions import get_submission
from judges.llm.providers import parse_model

router = APIRouter(prefix="/v1/submissions", tags=["submissions"], route_class=StrictJsonRoute)

KeyHeader = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255, pattern=r"^[ -~]+$")]


@router.post("", status_code=202, response_model=AcceptedOut)
async def submit(
    body: SubmissionIn, response: Response, service: ServiceDep, owner: OwnerDep, idempotency_key: KeyHeader = None
) -> dict[str, Any]:
    """Take in one agent's answers to one task; each becomes a job."""
    submission = await asyncio.to_thread(
        checked_submission,
        agent=body.agent,
        task_id=body.task_id,
        answers=[(answer.name, answer.text) for answer in body.answers],
        model=body.model,
        run=body.run,
        metadata=body.metadata,
    )
    _check_known(service, [submission])
    key = _key(owner, idempotency_key, "submission", json.dumps(body.model_dump(), sort_keys=True).encode())
    accepted = await service.intake.accept([submission], owner=owner, respond=_one, key=key)
    response.headers["Location"] = f"/v1/submissions/{accepted['id']}"
    return accepted


@router.post("/archive", status_code=202, response_model=AcceptedArchiveOut)
async def submit_archive(
    service: ServiceDep,
    owner: OwnerDep,
    file: Annotated[UploadFile, File(description="zip or tar of <agent>/<task_id>/answer_k.md")],
    model: Annotated[str | None, Form()] = None,
    idempotency_key: KeyHeader = None,
) -> dict[str, Any]:
    """Take in the answers of many tasks at once: all of them or none."""
    submissions, digest = await asyncio.to_thread(_read, file)
    if model is not None:
        submissions = [_with_model(submission, model) for submission in submissions]
    _check_known(service, submissions)
    key = _key(owner, idempotency_key, "archive", f"{digest} {model}".encode())
    return await service.intake.accept(submissions, owner=owner, respond=_many, key=key)


@router.get("/{submission_id}")
async def submission(submission_id: IdPath, service: ServiceDep, _owner: OwnerDep) -> SubmissionOut:
    """A submission with its jobs' states."""
    async with service.database.begin() as connection:
        record = await get_submission(connection, submission_id)
        if record is None:
            raise not_found("submission")
        return SubmissionOut.of(record, await jobs_of_submission(connection, submission_id))


def _check_known(service: Service, submissions: Sequence[Submission]) -> None:
    """Whether every task has a judge file, sound or not, and every model a provider."""
    many = len(submissions) > 1
    errors = []
    for submission in submissions:
        if not service.runtime.knows_task(submission.task_id):
            where = f"{submission.agent}/{submission.task_id}" if many else "task_id"
            errors.append((where, f"there is no task {submission.task_id!r}; GET /v1/tasks lists them"))
        if submission.model is not None:
            parse_model(submission.model)
    if errors:
        raise Problem(422, "UNKNOWN_TASK", "no judge for this task", errors=errors)


def _read(upload: UploadFile) -> tuple[Sequence[Submission], str]:
    data = upload.file.read()
    return read_archive(io.BytesIO(data)), hashlib.sha256(data).hexdigest()


def _with_model(submission: Submission, model: str) -> Submission:
    return checked_submission(
        agent=submission.agent,
        task_id=submission.task_id,
        answers=[(answer.name, answer.text) for answer in submission.answers],
        model=model,
    )


def _key(owner: str, key: str | None, kind: str, request: bytes) -> IdempotencyKey | None:
    if key is None:
        return None
    fingerprint = hashlib.sha256(kind.encode() + b"\0" + request).hexdigest()
    return IdempotencyKey(owner=owner, key=key, fingerprint=fingerprint)


def _one(receipts: Sequence[Receipt]) -> dict[str, Any]:
    return receipts[0].as_json()


def _many(receipts: Sequence[Receipt]) -> dict[str, Any]:
    return {"submissions": [receipt.as_json() for receipt in receipts]}
