"""Routes for the YAML files of tasks: read, check, test on a stored answer, save."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from app.access.keys import Caller
from app.api.access import OperatorDep, ReaderDep, ServiceDep
from app.api.examples import EXAMPLE_ID, EXAMPLE_TIME
from app.api.figures import ScoreOut, score_out
from app.api.models import BudgetUsd, JobStateOut, ListOut, ProgressOut, RecordModel
from app.api.paging import ID_PATTERN, IdPath, NamePath, ResultsPageDep
from app.api.problems import Problem, not_found
from app.api.request_fields import Model
from app.api.response_headers import sends
from app.api.strict_json import StrictJsonRoute
from app.api.submissions import accept_job
from app.features.tasks.files import (
    CheckedText,
    FileChanged,
    StoredFile,
    check_text,
    find_file,
    save_file,
    unified_diff,
)
from app.features.tasks.storage import scored_answers
from app.features.tasks.trials import as_submission, comparison
from app.jobs.intake import JobOptions
from app.service import Service
from app.storage.jobs import get_job
from app.storage.records import JobKind, JobStatus, Scope
from app.storage.results import get_result
from judges.yaml_tasks.document import MAX_BYTES, InvalidTask
from judges.yaml_tasks.editing import edit_task

router = APIRouter(prefix="/v1/tasks/{task_id}/file", tags=["tasks"], route_class=StrictJsonRoute)

answers_router = APIRouter(prefix="/v1", tags=["tasks"])

_JOB = f"job_{EXAMPLE_ID}"
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_TEXT = "format: 1\ndescription: Who?\nfields: {name: }\nrubric: {parallel: {given: {check: given(name)}}}\n"
_NODE: dict[str, Any] = {
    "path": "rubric/parallel/given",
    "id": "given",
    "kind": "check",
    "depth": 0,
    "line": 4,
    "values": {"check": "given(name)", "weight": 1, "critical": False},
    "sources": "",
    "gated": False,
    "children": 0,
}
_CHECKED: dict[str, Any] = {
    "sha256": _SHA256,
    "problems": [],
    "head": {"description": "Who?", "version": "1"},
    "nodes": [_NODE],
}
_Text = Annotated[str, Field(max_length=MAX_BYTES, description="Text of the file", examples=[_TEXT])]


class TaskProblemOut(BaseModel):
    """Error in a task file. ``line`` and ``column`` start at 1. ``field`` is the nearest field or node."""

    line: int
    column: int
    message: str
    field: str


class TaskNodeOut(BaseModel):
    """Node of the rubric, before its children. ``path`` with ``/`` and a key of ``values`` names a field.

    ``gated``: its group makes it critical. ``sources`` is the list of a ``for_each``, or the sources of a claim.
    """

    path: str
    id: str
    kind: str = Field(description="claim, check, parallel, sequential, for_each or graded")
    depth: int
    line: int
    values: dict[str, str | bool | int | float] = Field(description="Values that can be edited, by key")
    sources: str
    gated: bool
    children: int


class CheckedTaskOut(BaseModel):
    """Checked text of a task file. ``head`` and ``nodes`` are empty if it is not YAML."""

    sha256: str
    problems: list[TaskProblemOut]
    head: dict[str, str | bool | int | float] = Field(description="Editable values of the task: description, version")
    nodes: list[TaskNodeOut]


class TaskFileOut(CheckedTaskOut):
    """YAML file of a task. ``read_only``: why this caller cannot save it; null if they can."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"task_id": "who", "file": "who.yaml", "text": _TEXT, "read_only": None, **_CHECKED}
        }
    )

    task_id: str
    file: str
    text: str
    read_only: str | None


class TaskDraftOut(CheckedTaskOut):
    """Edited text of a task file, with the difference to the text that was edited."""

    model_config = ConfigDict(json_schema_extra={"example": {"text": _TEXT, "diff": "", **_CHECKED}})

    text: str
    diff: str = Field(description="Unified diff; empty if nothing changed")


class TaskEditsIn(BaseModel):
    """Values to change in a text. A field is the path of a node, ``/`` and the key, or the key of the task."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: _Text
    values: dict[str, str | bool] = Field(
        default={},
        max_length=30_000,
        description="New values by field, texts as in a form",
        examples=[{"rubric/parallel/given/weight": "2"}],
    )


class TaskSaveIn(BaseModel):
    """New text of a task file. ``base_sha256`` is the digest of the version that was edited."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: _Text
    base_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", examples=[_SHA256])]


class TaskTestIn(BaseModel):
    """Text of a task file, and the finished job whose answer it judges."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: _Text
    job_id: Annotated[str, Field(pattern=ID_PATTERN, examples=[_JOB])]
    model: Model | None = Field(None, description="Replaces the model of the job")
    budget_usd: BudgetUsd | None = None


class AcceptedTestOut(BaseModel):
    """Accepted test. ``id`` is the id of its job."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": _JOB,
                "status": "queued",
                "url": f"/v1/tasks/who/file/tests/{_JOB}",
                "job_url": f"/v1/jobs/{_JOB}",
            }
        }
    )

    id: str
    status: JobStatus
    url: str
    job_url: str


class TaskTestOut(JobStateOut):
    """Test of an unsaved task file. The comparison with the answer's earlier result is null until it has ended."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": _JOB,
                "model": "openai/gpt-6-luna",
                "status": "running",
                "stage": "judging",
                "progress": {"pages_done": 1, "pages_total": 1, "leaves_done": 0, "leaves_total": 1},
                "attempts": 1,
                "error": None,
                "result_id": None,
                "created_at": EXAMPLE_TIME,
                "started_at": EXAMPLE_TIME,
                "finished_at": None,
                "comparison": None,
            }
        }
    )

    progress: ProgressOut
    comparison: dict[str, Any] | None = Field(
        description="Scores ``before`` (null: no result) and ``after``, ``flips`` as in /v1/compare/flips, and the "
        "number of leaves that were ``reused`` and ``asked``"
    )


class ScoredAnswerOut(RecordModel):
    """Newest result of an answer, without its tree."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "result_id": f"res_{EXAMPLE_ID}",
                "job_id": _JOB,
                "agent": "my-agent",
                "answer_name": "answer_1.md",
                "run": "nightly",
                "status": "complete",
                "score": {"value": 0.75, "low": 0.75, "high": 0.75},
                "created_at": EXAMPLE_TIME,
            }
        }
    )

    result_id: str
    job_id: str
    agent: str
    answer_name: str
    run: str | None
    status: str
    score: ScoreOut | None = Field(description="null: nothing applies")
    created_at: datetime


@answers_router.get("/tasks/{task_id}/answers")
async def list_task_answers(
    task_id: NamePath, service: ServiceDep, caller: ReaderDep, paging: ResultsPageDep
) -> ListOut[ScoredAnswerOut]:
    """List the newest result of each answer to a task, without the trees, newest first."""
    async with service.database.begin() as connection:
        found = await scored_answers(
            connection, task_id, limit=paging.limit + 1, owner=caller.visible_owner, before=paging.cursor
        )
    page, next_cursor = paging.split(found, lambda one: one.result_id)
    return ListOut(
        items=[ScoredAnswerOut.of_record(one, score=score_out(one.score)) for one in page], next_cursor=next_cursor
    )


@router.get("")
async def get_task_file(task_id: NamePath, service: ServiceDep, caller: ReaderDep) -> TaskFileOut:
    """Return the YAML file of a task with its rubric tree and its errors."""
    return await _file_out(task_id, await _find(service, task_id), caller)


@router.post("/edits")
async def edit_task_file(
    body: TaskEditsIn, task_id: NamePath, service: ServiceDep, _caller: OperatorDep
) -> TaskDraftOut:
    """Change values in the text of a task file and check it. Comments are kept, and nothing is saved."""
    stored = await _find(service, task_id)

    def edited() -> TaskDraftOut:
        text = edit_task(body.text, body.values, stored.path.name) if body.values else body.text
        checked = _checked_json(check_text(text, stored.path.name))
        return TaskDraftOut(text=text, diff=unified_diff(body.text, text, stored.path.name), **checked)

    try:
        return await asyncio.to_thread(edited)
    except InvalidTask as error:
        raise _invalid(error) from error


@router.put("")
async def save_task_file(body: TaskSaveIn, task_id: NamePath, service: ServiceDep, caller: OperatorDep) -> TaskFileOut:
    """Replace the YAML file of a task. The next job and the next rescore use the new version.

    409 if the file has changed since ``base_sha256``: nothing is saved, and GET returns the version on disk.
    """
    stored = await _writable(service, task_id)
    checked = await asyncio.to_thread(check_text, body.text, stored.path.name)
    if checked.problems:
        raise _invalid(InvalidTask(stored.path.name, [problem for _, problem in checked.problems]))
    try:
        await asyncio.to_thread(save_file, stored.path, body.text, base_sha256=body.base_sha256)
    except FileChanged as error:
        detail = f"{stored.path.name} has changed since you opened it; nothing was saved"
        raise Problem(409, "FILE_CHANGED", detail) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise Problem(409, "READ_ONLY", f"{stored.path.name} cannot be written: {error.strerror}") from error
    await service.runtime.reload_judges([task_id])
    return await _file_out(task_id, await _find(service, task_id), caller)


@router.post("/tests", status_code=202, response_model=AcceptedTestOut, responses=sends(202, "Location"))
async def start_task_test(
    body: TaskTestIn, task_id: NamePath, response: Response, service: ServiceDep, caller: OperatorDep
) -> dict[str, Any]:
    """Judge one stored answer with the text of a task file that is not saved. Uses stored pages only.

    The test becomes a job. Its result does not count in the scores of the agent.
    """
    stored = await _find(service, task_id)
    checked = await asyncio.to_thread(check_text, body.text, stored.path.name)
    if checked.problems:
        raise _invalid(InvalidTask(stored.path.name, [problem for _, problem in checked.problems]))
    async with service.database.begin() as connection:
        job = await get_job(connection, body.job_id, owner=caller.visible_owner)
    if job is None or job.kind is not JobKind.ANSWER or job.task_id != task_id or not job.has_ended:
        raise not_found(f"finished job {body.job_id!r} that judges an answer to this task")
    return await accept_job(
        service,
        caller,
        response,
        as_submission(job, path=stored.path, text=body.text, model=body.model),
        JobOptions(budget_usd=body.budget_usd, kind=JobKind.TEST),
        path=f"/v1/tasks/{task_id}/file/tests",
    )


@router.get("/tests/{job_id}")
async def get_task_test(task_id: NamePath, job_id: IdPath, service: ServiceDep, caller: ReaderDep) -> TaskTestOut:
    """Return a test, with the comparison when it has ended."""
    async with service.database.begin() as connection:
        job = await get_job(connection, job_id, owner=caller.visible_owner)
        if job is None or job.kind is not JobKind.TEST or job.task_id != task_id:
            raise not_found("test")
        stored = None if job.result_id is None else await get_result(connection, job.result_id)
    found = None
    if stored is not None:
        after = await asyncio.to_thread(json.loads, stored.body)
        async with service.database.begin() as connection:
            before_id = after["tested_result"]
            earlier = None if before_id is None else await get_result(connection, before_id)
        before = None if earlier is None else earlier.body
        found = await asyncio.to_thread(lambda: comparison(None if before is None else json.loads(before), after))
    return TaskTestOut.of_record(job, progress=ProgressOut.of_record(job), comparison=found)


async def _find(service: Service, task_id: str) -> StoredFile:
    stored = await asyncio.to_thread(find_file, service.settings.judges, task_id)
    if stored is None:
        raise not_found("YAML file of this task")
    return stored


async def _writable(service: Service, task_id: str) -> StoredFile:
    stored = await _find(service, task_id)
    if stored.read_only is not None:
        raise Problem(409, "READ_ONLY", stored.read_only)
    return stored


async def _file_out(task_id: str, stored: StoredFile, caller: Caller) -> TaskFileOut:
    checked = await asyncio.to_thread(lambda: _checked_json(check_text(stored.text, stored.path.name)))
    read_only = stored.read_only
    if not caller.scope.includes(Scope.OPERATOR):
        read_only = f"Your key has the scope {caller.scope.value!r}. Saving needs the scope 'operator'."
    values = {**checked, "sha256": stored.sha256}
    return TaskFileOut(task_id=task_id, file=stored.path.name, text=stored.text, read_only=read_only, **values)


def _checked_json(checked: CheckedText) -> dict[str, Any]:
    return {
        "sha256": checked.sha256,
        "problems": [
            TaskProblemOut(line=each.line, column=each.column, message=each.message, field=field)
            for field, each in checked.problems
        ],
        "head": checked.head,
        "nodes": [TaskNodeOut(**asdict(node)) for node in checked.nodes],
    }


def _invalid(error: InvalidTask) -> Problem:
    places: Sequence[tuple[str, str]] = [
        (f"line {each.line}, column {each.column}", each.message) for each in error.problems
    ]
    return Problem(422, "INVALID", "The task file has errors; see errors", errors=places)
