"""Routes for the YAML files of tasks and for the newest result of each answer to a task."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.api.access import ReaderDep, ServiceDep
from app.api.examples import EXAMPLE_ID, EXAMPLE_TIME
from app.api.figures import ScoreOut, score_out
from app.api.models import ListOut, RecordModel
from app.api.paging import NamePath, ResultsPageDep
from app.api.problems import not_found
from app.features.tasks.files import read_file
from app.features.tasks.storage import scored_answers

router = APIRouter(prefix="/v1", tags=["tasks"])

_EXAMPLE: dict[str, Any] = {
    "task_id": "who",
    "file": "who.yaml",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "text": "format: 1\ndescription: Who?\nfields: {name: }\nrubric: {parallel: {given: {check: given(name)}}}\n",
    "problems": [],
    "nodes": [
        {
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
    ],
}


class TaskProblemOut(BaseModel):
    """Error in a task file. ``line`` and ``column`` start at 1."""

    line: int
    column: int
    message: str


class TaskNodeOut(BaseModel):
    """Node of the rubric, before its children.

    ``gated``: its group makes it critical. ``sources`` is the list of a ``for_each``, or the sources of a claim.
    """

    path: str
    id: str
    kind: str = Field(description="claim, check, parallel, sequential, for_each or graded")
    depth: int
    line: int
    values: dict[str, str | bool | int | float]
    sources: str
    gated: bool
    children: int


class TaskFileOut(BaseModel):
    """YAML file of a task with its errors and its rubric. ``nodes`` is empty if it is not YAML."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    task_id: str
    file: str
    sha256: str
    text: str
    problems: list[TaskProblemOut]
    nodes: list[TaskNodeOut]


class ScoredAnswerOut(RecordModel):
    """Newest result of an answer, without its tree."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "result_id": f"res_{EXAMPLE_ID}",
                "job_id": f"job_{EXAMPLE_ID}",
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


@router.get("/tasks/{task_id}/answers")
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


@router.get("/tasks/{task_id}/file")
async def get_task_file(task_id: NamePath, service: ServiceDep, _caller: ReaderDep) -> TaskFileOut:
    """Return the YAML file of a task with its rubric tree and its errors."""
    stored = await asyncio.to_thread(read_file, service.settings.judges, task_id)
    if stored is None:
        raise not_found("YAML file of this task")
    return TaskFileOut(
        task_id=task_id,
        file=stored.name,
        sha256=stored.sha256,
        text=stored.text,
        problems=[TaskProblemOut(line=one.line, column=one.column, message=one.message) for one in stored.problems],
        nodes=[TaskNodeOut(**asdict(node)) for node in stored.nodes],
    )
