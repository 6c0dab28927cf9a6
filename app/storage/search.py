"""Search for agents, runs, results and captures by a part of their names. Call inside a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.captures import shown_to
from app.storage.listings import equal
from app.storage.records import JobKind
from app.storage.results import owned_by
from app.storage.tables import captures, jobs, results


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Found object. ``kind`` and ``id`` are those of ``GET /v1/search``."""

    kind: str
    id: str
    label: str
    detail: str


async def search(connection: AsyncConnection, words: str, *, limit: int, owner: str | None = None) -> list[Found]:
    """Return objects that contain ``words`` in their names, at most ``limit`` of each kind. ``owner`` is a filter."""
    own_jobs = [jobs.c.kind == JobKind.ANSWER, *equal((jobs.c.owner, owner))]
    agents = select(jobs.c.agent).where(*own_jobs, contains(jobs.c.agent, words)).distinct()
    runs = select(jobs.c.agent, jobs.c.run, func.max(jobs.c.id)).where(*own_jobs, contains(jobs.c.run, words))
    runs = runs.group_by(jobs.c.agent, jobs.c.run)
    named = or_(*(contains(column, words) for column in (results.c.id, results.c.answer_name)))
    judged = select(results).where(results.c.kind == JobKind.ANSWER, *owned_by(owner), named)
    pages = select(captures.c.id, captures.c.url, captures.c.outcome).where(contains(captures.c.url, words))
    pages = pages if owner is None else pages.where(shown_to(owner))
    return [
        *(
            Found(kind="agent", id=row.agent, label=row.agent, detail="")
            for row in await connection.execute(agents.order_by(jobs.c.agent).limit(limit))
        ),
        *(
            Found(kind="run", id=f"{row.agent}@{row.run}", label=row.run, detail=row.agent)
            for row in await connection.execute(runs.order_by(func.max(jobs.c.id).desc()).limit(limit))
        ),
        *(
            Found(kind="result", id=row.id, label=row.answer_name, detail=f"{row.agent} · {row.task_id}")
            for row in await connection.execute(judged.order_by(results.c.id.desc()).limit(limit))
        ),
        *(
            Found(kind="page", id=row.id, label=row.url, detail=row.outcome)
            for row in await connection.execute(pages.order_by(captures.c.id.desc()).limit(limit))
        ),
    ]


def contains(column: ColumnElement[str], words: str) -> ColumnElement[bool]:
    """Return whether a column contains ``words``, in lower or upper case."""
    return column.icontains(words, autoescape=True)
