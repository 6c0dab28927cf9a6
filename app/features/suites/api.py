"""API for runs of step benchmarks: start, list and inspect them step by step.

A run is a job: use ``/v1/jobs/{id}`` to follow, cancel or retry it, and ``/v1/results/{result_id}`` for its figures.
This module adds the options and steps of a run.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.access.keys import Caller
from app.api.access import ReaderDep, ServiceDep, SubmitterDep
from app.api.examples import EXAMPLE_ID, references, sends
from app.api.models import JobStateOut, ListOut, RecordModel
from app.api.paging import ID_PATTERN, IdPath, JobsPageDep, PositionsPageDep
from app.api.problems import Problem, not_found
from app.api.request_fields import StrictJsonRoute
from app.api.submissions import KeyHeader, accept_job, key_of_request
from app.features.suites import storage as suite_steps
from app.features.suites.boxes import draw_boxes
from app.features.suites.data_folders import DataFolders, PathNotAllowed
from app.features.suites.jobs import SUITES, as_submission
from app.features.suites.records import Record, StepStatus, differing_settings, prediction_json
from app.features.suites.run_options import Mind2WebRunIn, MultimodalRunIn, SuiteName, SuiteRunIn
from app.features.suites.storage import StepMeans
from app.features.suites.suite_run import StepView
from app.jobs.intake import JobOptions
from app.service import Service
from app.storage import jobs as rows
from app.storage.listings import ListFilter
from app.storage.records import Job, JobKind, JobStatus
from app.storage.results import get_result
from judges.suites.errors import SuiteError
from judges.suites.step_metrics import compare_runs

_JOB = f"job_{EXAMPLE_ID}"
_STEP: dict[str, Any] = {
    "position": 3,
    "id": "t2:0",
    "task_id": "t2",
    "website": "rail",
    "domain": "Travel",
    "status": "scored",
    "reason": None,
    "element_acc": 0.0,
    "action_f1": 1.0,
    "step_acc": 0.0,
}


class AcceptedRunOut(BaseModel):
    """Accepted run. ``id`` is the id of its job."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": _JOB,
                "suite": "mm-mind2web",
                "status": "queued",
                "url": f"/v1/suites/mm-mind2web/runs/{_JOB}",
                "job_url": f"/v1/jobs/{_JOB}",
            }
        }
    )

    id: str
    suite: str
    status: JobStatus
    url: str
    job_url: str


class RunProgressOut(BaseModel):
    """Progress of a run. ``steps_total`` is null until the data were read."""

    steps_done: int
    steps_total: int | None
    scored: int
    not_judged: int


class RunMeansOut(RecordModel):
    """Means over the steps scored so far (micro), null before the first one. The result has all figures."""

    element_acc: float | None
    action_f1: float | None
    step_acc: float | None


class RunOut(JobStateOut):
    """Current state of a run."""

    suite: str
    order: dict[str, Any] = Field(description="Options of the run")
    progress: RunProgressOut
    means: RunMeansOut
    job_url: str

    @classmethod
    def of(cls, job: Job, options: dict[str, Any], means: StepMeans) -> RunOut:
        counts = means.by_status
        return cls.of_record(
            job,
            suite=job.task_id,
            order=options,
            progress=RunProgressOut(
                steps_done=sum(counts.values()),
                steps_total=means.total,
                scored=counts.get("scored", 0),
                not_judged=counts.get("not_judged", 0),
            ),
            means=means,
            job_url=f"/v1/jobs/{job.id}",
        )


class StepSummaryOut(BaseModel):
    """Step in a list."""

    model_config = ConfigDict(json_schema_extra={"example": _STEP})

    position: int
    id: str
    task_id: str
    website: str
    domain: str
    status: str
    reason: str | None
    element_acc: float | None
    action_f1: float | None
    step_acc: float | None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> StepSummaryOut:
        return cls.model_validate({name: record.get(name) for name in cls.model_fields})


class StepOut(BaseModel):
    """Step with all details. ``step`` is its entry in the predictions file; ``page`` is read from the data again."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "step": {**_STEP, "raw_output": "ELEMENT: B\n\nACTION: CLICK\n\nVALUE: None", "none_option": "V"},
                "page": "<html> <div> <a id=0> Guests </a> <a id=1> Search </a> </div> </html>",
                "page_problem": None,
                "screenshot": f"/v1/suites/mm-mind2web/runs/{_JOB}/steps/3/screenshot",
                "boxes": [{"role": "gold", "id": "110", "x": 10.0, "y": 40.0, "width": 80.0, "height": 20.0}],
            }
        }
    )

    step: dict[str, Any] = Field(description="Prompt, options, raw output, parsed output, gold answer and verdict")
    page: str | None = Field(description="Page text around the options; null if the data cannot be read")
    page_problem: str | None = None
    screenshot: str | None = Field(None, description="URL of the screenshot, if there is one")
    boxes: list[dict[str, Any]] = Field(
        default_factory=list, description="Elements on the screenshot: role, id, x, y, width, height"
    )


_COMPARED: dict[str, Any] = {
    "a": 0.41,
    "b": 0.45,
    "difference": 0.04,
    "interval_95": {"low": 0.01, "high": 0.07},
    "p": 0.012,
}
_CHANGED: dict[str, Any] = {"id": "T1_a", "task_id": "T1", "position_a": 3, "position_b": 3}


class RunComparisonOut(BaseModel):
    """Comparison of two runs over the steps that were scored in both."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "a": _JOB,
                "b": f"{_JOB[:-1]}x",
                "settings": [{"setting": "model", "a": "openai/gpt-4o", "b": "openai/gpt-4o-mini"}],
                "steps": 1339,
                "tasks": 177,
                "only_a": 0,
                "only_b": 0,
                "not_scored": 2,
                "micro": {"element": _COMPARED, "operation": _COMPARED, "step": _COMPARED},
                "macro": {"element": _COMPARED, "operation": _COMPARED, "step": _COMPARED},
                "task_success": {"tasks": 175, **_COMPARED},
                "changes": {
                    "both": 400, "only_a": 30, "only_b": 80, "neither": 829, "lost": [_CHANGED], "gained": [_CHANGED],
                },
            }
        }
    )  # fmt: skip

    a: str
    b: str
    settings: list[dict[str, Any]] = Field(description="Settings of the runs that differ")
    steps: int = Field(description="Steps scored in both runs")
    tasks: int
    only_a: int = Field(description="Steps that only A has")
    only_b: int
    not_scored: int = Field(description="Steps of both runs that one of them did not score")
    micro: dict[str, Any] | None = Field(
        description="element, operation and step as means over steps: a, b, difference, interval_95 (bootstrap by "
        "task) and p (sign-flip test over tasks); null if no step was scored in both runs"
    )
    macro: dict[str, Any] | None = Field(description="The same as means over tasks")
    task_success: dict[str, Any] | None = Field(description="Over tasks whose steps were all scored in both runs")
    changes: dict[str, Any] = Field(
        description="Steps that succeed in both runs, one or none, and the first 200 that only A (lost) or only B "
        "(gained) passes"
    )


router = APIRouter(prefix="/v1/suites", tags=["suites"], route_class=StrictJsonRoute)


PositionPath = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.post("/mind2web/runs", status_code=202, response_model=AcceptedRunOut, responses=sends(202, "Location"))
async def create_mind2web_run(
    body: Mind2WebRunIn,
    response: Response,
    service: ServiceDep,
    caller: SubmitterDep,
    idempotency_key: KeyHeader = None,
) -> dict[str, Any]:
    """Start a run of a model over Mind2Web, or score predictions from a file."""
    return await _accept_run(SuiteName.MIND2WEB, body, response, service, caller, idempotency_key)


@router.post("/mm-mind2web/runs", status_code=202, response_model=AcceptedRunOut, responses=sends(202, "Location"))
async def create_mm_mind2web_run(
    body: MultimodalRunIn,
    response: Response,
    service: ServiceDep,
    caller: SubmitterDep,
    idempotency_key: KeyHeader = None,
) -> dict[str, Any]:
    """Start a run of a model over Multimodal-Mind2Web~, or score answers from a file."""
    return await _accept_run(SuiteName.MM_MIND2WEB, body, response, service, caller, idempotency_key)


@router.get("/{suite}/runs")
async def list_suite_runs(
    suite: SuiteName, service: ServiceDep, caller: ReaderDep, paging: JobsPageDep
) -> ListOut[RunOut]:
    """List the runs of a suite, newest first."""
    async with service.database.begin() as connection:
        newest = await rows.list_jobs(
            connection,
            limit=paging.limit + 1,
            chosen=ListFilter(owner=caller.visible_owner, agent=suite.value),
            before=paging.cursor,
            kind=JobKind.SUITE,
        )
        page, next_cursor = paging.split(newest, lambda job: job.id)
        items = [await _run_out(connection, job) for job in page]
    return ListOut(items=items, next_cursor=next_cursor)


@router.get("/{suite}/compare")
async def compare_suite_runs(
    suite: SuiteName,
    service: ServiceDep,
    caller: ReaderDep,
    a: Annotated[str, Query(pattern=ID_PATTERN, description="Id of the baseline run")],
    b: Annotated[str, Query(pattern=ID_PATTERN, description="Id of the other run")],
    seed: Annotated[int, Query(ge=0, lt=2**31, description="Seed for the resampling of the intervals")] = 0,
) -> RunComparisonOut:
    """Compare two finished runs, paired by step and task. Differences are B - A."""
    bodies: list[str] = []
    texts: list[list[str]] = []
    for run_id in (a, b):
        async with service.database.begin() as connection:
            job = await _find_job(connection, caller, suite, run_id)
            result = None if job.result_id is None else await get_result(connection, job.result_id)
            texts.append(await suite_steps.record_texts(connection, job.id))
        if result is None:
            raise Problem(409, "RUN_UNFINISHED", f"Run {run_id} has no result yet; compare finished runs")
        bodies.append(result.body)

    def compared() -> dict[str, Any]:
        first, second = map(suite_steps.parse_records, texts)
        settings = differing_settings(*map(json.loads, bodies))
        return {"settings": settings, "micro": None, "macro": None, **compare_runs(first, second, seed=seed)}

    return RunComparisonOut.model_validate({"a": a, "b": b, **await asyncio.to_thread(compared)})


@router.get("/{suite}/runs/{run_id}")
async def get_suite_run(suite: SuiteName, run_id: IdPath, service: ServiceDep, caller: ReaderDep) -> RunOut:
    """Return one run: its options, status and current figures."""
    async with service.database.begin() as connection:
        return await _run_out(connection, await _find_job(connection, caller, suite, run_id))


@router.get("/{suite}/runs/{run_id}/steps")
async def list_suite_steps(
    suite: SuiteName,
    run_id: IdPath,
    service: ServiceDep,
    caller: ReaderDep,
    paging: PositionsPageDep,
    status: StepStatus | None = None,
    task_id: Annotated[str | None, Query(max_length=200)] = None,
    success: Annotated[
        bool | None, Query(description="true: only successful steps; false: only unsuccessful ones")
    ] = None,
) -> ListOut[StepSummaryOut]:
    """List the judged steps of a run in data order."""
    async with service.database.begin() as connection:
        job = await _find_job(connection, caller, suite, run_id)
        selected = await suite_steps.list_steps(
            connection,
            job.id,
            limit=paging.limit + 1,
            after=None if paging.cursor is None else int(paging.cursor),
            status=None if status is None else status.value,
            task_id=None if task_id is None else task_id.replace("\0", ""),
            success=success,
        )
    page, next_cursor = paging.split(selected, lambda record: str(record["position"]))
    return ListOut(items=[StepSummaryOut.of(record) for record in page], next_cursor=next_cursor)


@router.get("/{suite}/runs/{run_id}/steps/{position}")
async def get_suite_step(
    suite: SuiteName, run_id: IdPath, position: PositionPath, service: ServiceDep, caller: ReaderDep
) -> StepOut:
    """Return one step: the request, the reply, the gold answer and the page."""
    record, view = await _find_step(service, caller, suite, run_id, position)
    step = prediction_json(record)
    if isinstance(view, str):
        return StepOut(step=step, page=None, page_problem=view, screenshot=None)
    url = f"/v1/suites/{suite.value}/runs/{run_id}/steps/{position}/screenshot" if view.screenshot else None
    return StepOut(step=step, page=view.page, screenshot=url, boxes=[dataclasses.asdict(box) for box in view.boxes])


@router.get(
    "/{suite}/runs/{run_id}/steps/{position}/screenshot",
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}, "image/png": {}}, **references("Cache-Control")}},
)
async def get_suite_screenshot(
    suite: SuiteName, run_id: IdPath, position: PositionPath, service: ServiceDep, caller: ReaderDep
) -> Response:
    """Return the screenshot of a step with boxes around the gold elements (green) and the picked one (orange)."""
    _, view = await _find_step(service, caller, suite, run_id, position)
    if isinstance(view, str):
        raise not_found(f"screenshot: {view}")
    if view.screenshot is None:
        raise not_found("screenshot: the data contain none for this step")
    try:
        drawn, media_type = await asyncio.to_thread(draw_boxes, view.screenshot, view.boxes)
    except SuiteError as error:
        raise not_found(f"screenshot: {error}") from error
    return Response(drawn, media_type=media_type, headers={"Cache-Control": "private, max-age=600"})


async def _accept_run(
    suite: SuiteName,
    options: SuiteRunIn,
    response: Response,
    service: Service,
    caller: Caller,
    idempotency_key: str | None,
) -> dict[str, Any]:
    await asyncio.to_thread(check_paths, options, DataFolders.of(service.settings))
    submission = as_submission(suite.value, options)
    request = f"{suite.value}\0{submission.answers[0].text}"
    return await accept_job(
        service,
        caller,
        response,
        submission,
        JobOptions(priority=options.priority, budget_usd=options.budget_usd, kind=JobKind.SUITE),
        key=key_of_request(caller.owner, idempotency_key, JobKind.SUITE.value, request.encode()),
        path=f"/v1/suites/{suite.value}/runs",
        suite=suite.value,
    )


def check_paths(options: SuiteRunIn, folders: DataFolders) -> None:
    """Raise Problem that lists every field with a file that must not be read."""
    errors = []
    for name, path in options.paths().items():
        try:
            folders.resolve_allowed(path)
        except PathNotAllowed as error:
            errors.append((name, str(error)))
    if errors:
        raise Problem(
            404, "DATA_NOT_FOUND", "A data file does not exist in the folders that this service may read", errors=errors
        )


async def _run_out(connection: Any, job: Job) -> RunOut:
    options = json.loads(await rows.answer_text(connection, job.answer_sha256))
    return RunOut.of(job, options, await suite_steps.means_of(connection, job.id))


async def _find_job(connection: Any, caller: Caller, suite: SuiteName, run_id: str) -> Job:
    job = await rows.get_job(connection, run_id, owner=caller.visible_owner)
    if job is None or job.kind is not JobKind.SUITE or job.task_id != suite.value:
        raise not_found("run")
    return job


async def _find_step(
    service: Service, caller: Caller, suite: SuiteName, run_id: str, position: int
) -> tuple[Record, StepView | str]:
    """Return a step with its data, or with the reason why the data cannot be read."""
    async with service.database.begin() as connection:
        job = await _find_job(connection, caller, suite, run_id)
        record = await suite_steps.get_step(connection, job.id, position)
        if record is None:
            raise not_found("step, or it is not judged yet")
        options_json = await rows.answer_text(connection, job.answer_sha256)
    run_class, folders = SUITES[suite.value], DataFolders.of(service.settings)
    options = run_class.options_class.model_validate_json(options_json)
    try:
        return record, await asyncio.to_thread(run_class.step_view, options, folders.resolve_allowed, record)
    except (SuiteError, PathNotAllowed) as error:
        return record, folders.hide_folders(str(error))
