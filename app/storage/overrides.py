"""The rows of what people say of single leaves: only ever added. Every function takes an open transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, RowMapping, Select, exists, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.results import owned_by
from app.storage.tables import answers, jobs, overrides, results


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One row. ``outcome`` is what the person says, None where the row takes back the one that ``withdraws`` names.

    ``verdict`` is the judge's own outcome, ``model`` who said that (None: code). ``by`` is the name a person gave,
    ``key_owner`` whose key it came with.
    """

    id: str
    result_id: str
    leaf: str
    outcome: str | None
    verdict: str
    model: str | None
    reason: str
    by: str
    key_owner: str
    withdraws: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedResult:
    """A result that people spoke of: its stored JSON, and the answer that it judges."""

    id: str
    body: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """An override, and which answer's result it is about."""

    override: Override
    agent: str
    task_id: str
    answer_name: str


_COLUMNS = tuple(overrides.c)


async def insert_override(connection: AsyncConnection, override: Override) -> None:
    """Add a row."""
    values = {name: getattr(override, name) for name in override.__slots__}
    await connection.execute(insert(overrides).values(values))


async def lock_result(connection: AsyncConnection, result_id: str, *, owner: str | None) -> str | None:
    """A result's body, if it is ``owner``'s (None: anybody's); until the transaction ends nobody else settles it."""
    query = select(results.c.body).where(results.c.id == result_id, *owned_by(owner)).with_for_update()
    body: str | None = (await connection.execute(query)).scalar_one_or_none()
    return body


async def overrides_of(
    connection: AsyncConnection, result_ids: Iterable[str], *, owner: str | None = None
) -> Mapping[str, Sequence[Override]]:
    """What was said of results, the oldest first, by result; those that nobody spoke of are missing."""
    found: dict[str, list[Override]] = defaultdict(list)
    query = (
        select(*_COLUMNS)
        .join(results, results.c.id == overrides.c.result_id)
        .where(overrides.c.result_id.in_(list(result_ids)), *owned_by(owner))
        .order_by(overrides.c.id)
    )
    for row in (await connection.execute(query)).mappings():
        found[row["result_id"]].append(Override(**row))
    return found


async def list_reviews(
    connection: AsyncConnection,
    *,
    limit: int,
    owner: str | None = None,
    before: str | None = None,
    agent: str | None = None,
    task_id: str | None = None,
) -> list[Review]:
    """What people said, newest first; ``before`` is the id of the last one seen."""
    query = _reviews(owner, agent, task_id).order_by(overrides.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(overrides.c.id < before)
    return [_review(row) for row in (await connection.execute(query)).mappings()]


async def list_reviewed(
    connection: AsyncConnection,
    *,
    limit: int,
    owner: str | None = None,
    after: str = "",
    agent: str | None = None,
    task_id: str | None = None,
) -> list[ReviewedResult]:
    """Results that people spoke of, the oldest first; ``after`` is the id of the last one seen."""
    query = (
        select(results.c.id, results.c.body, answers.c.text.label("answer"))
        .join(jobs, jobs.c.id == results.c.job_id)
        .join(answers, answers.c.sha256 == jobs.c.answer_sha256)
        .where(
            exists(select(overrides.c.id).where(overrides.c.result_id == results.c.id)),
            results.c.id > after,
            *owned_by(owner),
            *_narrowed(agent, task_id),
        )
        .order_by(results.c.id)
        .limit(limit)
    )
    return [ReviewedResult(**row) for row in (await connection.execute(query)).mappings()]


def by_person(rows: Iterable[Override]) -> list[Override]:
    """Of one result's overrides (oldest first) each person's last word on each leaf that was not taken back."""
    every = list(rows)
    withdrawn = {row.withdraws for row in every}
    stays = {(row.leaf, row.by): row for row in every if row.outcome is not None and row.id not in withdrawn}
    return list(stays.values())


def _reviews(owner: str | None, agent: str | None, task_id: str | None) -> Select[tuple[object, ...]]:
    return (
        select(*_COLUMNS, results.c.agent, results.c.task_id, results.c.answer_name)
        .join(results, results.c.id == overrides.c.result_id)
        .where(*owned_by(owner), *_narrowed(agent, task_id))
    )


def _narrowed(agent: str | None, task_id: str | None) -> list[ColumnElement[bool]]:
    wanted = ((results.c.agent, agent), (results.c.task_id, task_id))
    return [column == value for column, value in wanted if value is not None]


def _review(row: RowMapping) -> Review:
    fields = dict(row)
    agent, task_id, answer_name = (str(fields.pop(name)) for name in ("agent", "task_id", "answer_name"))
    return Review(override=Override(**fields), agent=agent, task_id=task_id, answer_name=answer_name)
