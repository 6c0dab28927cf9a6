"""Routes for the YAML files of tasks and for the newest result of each answer to a task."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from fastapi import APIRouter
from pydantic import BaseModel, Field

import judges.tasks
from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut, RecordModel, ScoreOut
from app.api.paging import NamePath, ResultsPageDep
from app.api.problems import not_found
from app.features.tasks.storage import scored_answers
from judges.loader import JUDGE_SUFFIXES
from judges.source_code import YAML_SUFFIX
from judges.yaml_tasks.compiler import compile_task
from judges.yaml_tasks.document import InvalidTask, Problem, read_document
from judges.yaml_tasks.model import TaskNode, task_nodes

router = APIRouter(prefix="/v1", tags=["tasks"])


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

    task_id: str
    file: str
    sha256: str
    text: str
    problems: list[TaskProblemOut]
    nodes: list[TaskNodeOut]


class ScoredAnswerOut(RecordModel):
    """Newest result of an answer, without its tree."""

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
    return ListOut.page(found, paging, lambda one: one.result_id, ScoredAnswerOut.of_record)


@router.get("/tasks/{task_id}/file")
async def get_task_file(task_id: NamePath, service: ServiceDep, _caller: ReaderDep) -> TaskFileOut:
    """Return the YAML file of a task with its rubric tree and its errors."""
    stored = await asyncio.to_thread(read_file, service.settings.judges, task_id)
    if stored is None:
        raise not_found("YAML file of this task")
    return stored


def read_file(folders: Sequence[Path], task_id: str) -> TaskFileOut | None:
    """Return the YAML file that defines a task; None if there is none, or if a Python file defines the task. Blocks."""
    for folder in (*folders, Path(judges.tasks.__file__).parent):
        found = [path for suffix in JUDGE_SUFFIXES if (path := folder.expanduser() / f"{task_id}{suffix}").is_file()]
        if not found:
            continue
        if found[-1].suffix != YAML_SUFFIX:
            return None
        try:
            return _checked(task_id, found[-1].name, found[-1].read_bytes())
        except OSError:
            return None
    return None


def _checked(task_id: str, name: str, data: bytes) -> TaskFileOut:
    text = data.decode("utf-8-sig", "replace")
    problems: Sequence[Problem] = ()
    nodes: Sequence[TaskNode] = ()
    try:
        nodes = task_nodes(read_document(text, name))
        compile_task(text, name)
    except InvalidTask as error:
        problems = error.problems
    return TaskFileOut(
        task_id=task_id,
        file=name,
        sha256=hashlib.sha256(data).hexdigest(),
        text=text,
        problems=[TaskProblemOut(line=one.line, column=one.column, message=one.message) for one in problems],
        nodes=[TaskNodeOut(**asdict(node)) for node in nodes],
    )
