"""Response models for suite runs and their steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.api.models import JobErrorOut
from app.features.suites.reports import prediction
from app.storage.records import Job, JobStatus
from app.storage.suite_steps import StepMeans

_JOB = "job_01m7zskz6revg7seq0pskhvm69"
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


class RunMeansOut(BaseModel):
    """Means over the steps scored so far (micro), null before the first one. The result has all figures."""

    element_acc: float | None
    action_f1: float | None
    step_acc: float | None


class RunOut(BaseModel):
    """Current state of a run."""

    id: str
    suite: str
    order: dict[str, Any] = Field(description="Options of the run")
    model: str | None
    status: JobStatus
    stage: str | None
    progress: RunProgressOut
    means: RunMeansOut
    attempts: int
    error: JobErrorOut | None
    result_id: str | None
    job_url: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @classmethod
    def of(cls, job: Job, order: dict[str, Any], means: StepMeans) -> RunOut:
        counts = means.by_status
        return cls(
            id=job.id,
            suite=job.task_id,
            order=order,
            model=job.model,
            status=job.status,
            stage=job.stage,
            progress=RunProgressOut(
                steps_done=sum(counts.values()),
                steps_total=means.total,
                scored=counts.get("scored", 0),
                not_judged=counts.get("not_judged", 0),
            ),
            means=RunMeansOut(element_acc=means.element_acc, action_f1=means.action_f1, step_acc=means.step_acc),
            attempts=job.attempts,
            error=None if job.error is None else JobErrorOut(**dataclasses.asdict(job.error)),
            result_id=job.result_id,
            job_url=f"/v1/jobs/{job.id}",
            created_at=job.created_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
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

    @classmethod
    def of(
        cls,
        record: Mapping[str, Any],
        *,
        page: str | None,
        page_problem: str | None = None,
        screenshot: str | None = None,
        boxes: Sequence[dict[str, Any]] = (),
    ) -> StepOut:
        return cls(
            step=prediction(record), page=page, page_problem=page_problem, screenshot=screenshot, boxes=list(boxes)
        )
