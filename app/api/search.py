"""Route for the search over agents, tasks, runs, results, captured pages, and objects of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field

from app.api.access import ReaderDep, ServiceDep
from app.api.models import ListOut, RecordModel
from app.service import Service
from app.storage.results import Found, search

router = APIRouter(prefix="/v1/search", tags=["results"])

MAX_PER_KIND = 20


class FoundOut(RecordModel):
    """Something that was found."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"kind": "run", "id": "my-agent@nightly", "label": "nightly", "detail": "my-agent"}
        }
    )

    kind: str = Field(description="agent, task, run, result or page")
    id: str = Field(description="Name of the agent or task, agent@run, or id of the result or capture")
    label: str
    detail: str


@router.get("")
async def search_names(
    service: ServiceDep,
    caller: ReaderDep,
    q: Annotated[str, Query(min_length=1, max_length=200, description="Part of a name, id or URL")],
    limit: Annotated[int, Query(ge=1, le=MAX_PER_KIND, description="Maximum number of each kind")] = 5,
) -> ListOut[FoundOut]:
    """Find agents, tasks, runs, results and captured pages by a part of their names, ids or URLs."""
    words = q.replace("\0", "")
    async with service.database.begin() as connection:
        found = await search(connection, words, limit=limit, owner=caller.visible_owner)
    items = [*_tasks(service, words, limit), *found]
    return ListOut(items=[FoundOut.of_record(one) for one in items], next_cursor=None)


def _tasks(service: Service, words: str, limit: int) -> Sequence[Found]:
    """Return the tasks whose name or question contains ``words``."""
    catalogue, part = service.runtime.catalogue, words.casefold()
    questions = {name: judge.description for name, judge in catalogue.judges.items()}
    names = sorted(catalogue.judges.keys() | catalogue.broken.keys())
    matching = [name for name in names if part in f"{name} {questions.get(name, '')}".casefold()]
    return [Found(kind="task", id=name, label=name, detail=questions.get(name, "")[:200]) for name in matching[:limit]]
