"""Routes for tasks."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut, TaskOut
from app.api.paging import NameFilter, NamePath, PageRequest
from app.api.problems import not_found
from judges.loader import JudgeCatalogue
from judges.source_code import YAML_SUFFIX

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

MAX_TASKS = 1000


@router.get("")
async def list_tasks(
    service: ServiceDep,
    _caller: ReaderDep,
    status: Literal["ready", "broken"] | None = None,
    cursor: NameFilter = None,
    limit: Annotated[int, Query(ge=1, le=MAX_TASKS)] = MAX_TASKS,
) -> ListOut[TaskOut]:
    """List tasks, sorted by name. The cursor is a name."""
    await service.runtime.reload_judges()
    catalogue = service.runtime.catalogue
    of_status = {"ready": catalogue.judges.keys(), "broken": catalogue.broken.keys() - catalogue.judges.keys()}
    names = of_status[status] if status else catalogue.judges.keys() | catalogue.broken.keys()
    page, next_cursor = PageRequest(cursor, limit).split(sorted(name for name in names if name > (cursor or "")), str)
    return ListOut(items=[_task(catalogue, name) for name in page], next_cursor=next_cursor)


@router.get("/{task_id}")
async def get_task(task_id: NamePath, service: ServiceDep, _caller: ReaderDep) -> TaskOut:
    """Return one task and its judge."""
    await service.runtime.reload_judges([task_id])
    if not service.runtime.has_task(task_id):
        raise not_found("task")
    return _task(service.runtime.catalogue, task_id)


def _task(catalogue: JudgeCatalogue, task_id: str) -> TaskOut:
    judge = catalogue.judges.get(task_id)
    if judge is None:
        return TaskOut(
            task_id=task_id,
            status="broken",
            kind=None,
            name=None,
            version=None,
            sha256=None,
            description="",
            file=f"{task_id}{YAML_SUFFIX if f'{task_id}{YAML_SUFFIX}:' in catalogue.broken[task_id] else '.py'}",
            error=catalogue.broken[task_id],
        )
    return TaskOut(
        task_id=task_id,
        status="ready",
        kind=judge.kind,
        name=judge.name,
        version=judge.version,
        sha256=judge.sha256,
        description=judge.description,
        file=None if judge.path is None else judge.path.name,
    )
