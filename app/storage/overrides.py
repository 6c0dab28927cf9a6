"""Queries for overrides: human verdicts on single leaves. Append-only. Call every function inside a transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, exists, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.listings import below, equal
from app.storage.results import owned_by
from app.storage.tables import answers, jobs, overrides, results


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Human verdict on a leaf.

    Attributes:
        outcome: The reviewer's verdict; None if this row withdraws the override ``withdraws``.
        verdict: The judge's outcome.
        model: The model that gave the judge's outcome; None if code decided.
        by: Name that the reviewer entered.
        key_owner: Owner of the API key that was used.
        withdraws: ID of the override that this row withdraws.
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
    """Result with overrides: its JSON text, and the text of the judged answer."""

    id: str
    body: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(Override):
    """Override with the agent, task and answer of its result."""

    agent: str
    task_id: str
    answer_name: str


async def insert_override(connection: AsyncConnection, override: Override) -> None:
    await connection.execute(insert(overrides).values(asdict(override)))


async def lock_result(connection: AsyncConnection, result_id: str, *, owner: str | None) -> str | None:
    """Return the body of a result, or None, and lock its row. ``owner`` limits the query to one owner."""
    query = select(results.c.body).where(results.c.id == result_id, *owned_by(owner)).with_for_update()
    body: str | None = (await connection.execute(query)).scalar_one_or_none()
    return body


async def overrides_of(connection: AsyncConnection, result_ids: Iterable[str]) -> Mapping[str, Sequence[Override]]:
    """Return the overrides by result ID, oldest first. Results without overrides are omitted."""
    by_result: dict[str, list[Override]] = defaultdict(list)
    query = select(overrides).where(overrides.c.result_id.in_(list(result_ids))).order_by(overrides.c.id)
    for row in (await connection.execute(query)).mappings():
        by_result[row["result_id"]].append(Override(**row))
    return by_result


async def list_reviews(
    connection: AsyncConnection,
    *,
    limit: int,
    owner: str | None,
    before: str | None = None,
    agent: str | None,
    task_id: str | None,
) -> list[Review]:
    """Return overrides, newest first. ``before`` is the ID of the last one of the previous page."""
    query = (
        select(*overrides.c, results.c.agent, results.c.task_id, results.c.answer_name)
        .join(results, results.c.id == overrides.c.result_id)
        .where(*_of_results(owner, agent, task_id), *below(overrides.c.id, before))
        .order_by(overrides.c.id.desc())
        .limit(limit)
    )
    return [Review(**row) for row in (await connection.execute(query)).mappings()]


async def list_reviewed(
    connection: AsyncConnection,
    *,
    limit: int,
    owner: str | None,
    after: str,
    agent: str | None,
    task_id: str | None,
) -> list[ReviewedResult]:
    """Return results with overrides, oldest first. ``after`` is the ID of the last one of the previous page."""
    query = (
        select(results.c.id, results.c.body, answers.c.text.label("answer"))
        .join(jobs, jobs.c.id == results.c.job_id)
        .join(answers, answers.c.sha256 == jobs.c.answer_sha256)
        .where(
            exists(select(overrides.c.id).where(overrides.c.result_id == results.c.id)),
            results.c.id > after,
            *_of_results(owner, agent, task_id),
        )
        .order_by(results.c.id)
        .limit(limit)
    )
    return [ReviewedResult(**row) for row in (await connection.execute(query)).mappings()]


def by_person(rows: Iterable[Override]) -> list[Override]:
    """Return each reviewer's latest override per leaf that is not withdrawn. ``rows`` are in order, oldest first."""
    all_rows = list(rows)
    withdrawn = {row.withdraws for row in all_rows}
    latest = {(row.leaf, row.by): row for row in all_rows if row.outcome is not None and row.id not in withdrawn}
    return list(latest.values())


def _of_results(owner: str | None, agent: str | None, task_id: str | None) -> list[ColumnElement[bool]]:
    return equal((results.c.owner, owner), (results.c.agent, agent), (results.c.task_id, task_id))
