"""Queries for budgets, checkpoints and model usage.

A budget has a spent amount, and reservations for running requests. Call every function inside a transaction. A
transaction that changes budgets must call ``add_spent`` first, because it locks the rows in a fixed order.

Checkpoints are model replies of a job, stored until the job has a complete result. Model usage has calls, tokens and
cost per day. Usage is written together with the replies, so it includes requests of jobs without a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.listings import equal
from app.storage.tables import budget_reservations, budgets, checkpoints, model_usage, submissions
from rubrics.verdict import Usage

INSTALLATION_BUDGET = "installation"
"""ID of the budget of ``ASSAY_BUDGET_USD``. A submission's budget has the ID of the submission."""
INSTALLATION_TOKEN_BUDGET = "installation tokens"  # noqa: S105
"""ID of the budget of ``ASSAY_BUDGET_TOKENS``. Its amounts are tokens, not USD."""


async def add_spent(connection: AsyncConnection, amounts: Mapping[str, float]) -> dict[str, float]:
    """Add amounts to budgets and lock the rows until the transaction ends. Return the new totals.

    An amount of 0 only locks and reads the row.
    """
    rows = [{"id": budget_id, "spent": amounts[budget_id]} for budget_id in sorted(amounts)]
    adding = insert(budgets).values(rows)
    adding = adding.on_conflict_do_update(
        index_elements=["id"], set_={"spent": budgets.c.spent + adding.excluded.spent}
    )
    updated = await connection.execute(adding.returning(budgets.c.id, budgets.c.spent))
    return {row.id: row.spent for row in updated}


async def get_spent(connection: AsyncConnection, budget_id: str) -> float:
    query = select(budgets.c.spent).where(budgets.c.id == budget_id)
    return float((await connection.execute(query)).scalar_one_or_none() or 0.0)


async def limits_of(connection: AsyncConnection, ids: Iterable[str]) -> dict[str, float]:
    """Return the budgets in USD of the submissions that have one."""
    query = select(submissions.c.id, submissions.c.budget_usd).where(
        submissions.c.id.in_(list(ids)), submissions.c.budget_usd.is_not(None)
    )
    return {row.id: row.budget_usd for row in await connection.execute(query)}


async def reserved_by_others(connection: AsyncConnection, ids: Iterable[str], *, holder: str) -> dict[str, float]:
    """Return the unexpired reservations of other processes, by budget."""
    query = (
        select(budget_reservations.c.budget_id, func.sum(budget_reservations.c.amount).label("amount"))
        .where(
            budget_reservations.c.budget_id.in_(list(ids)),
            budget_reservations.c.holder != holder,
            budget_reservations.c.expires_at > func.clock_timestamp(),
        )
        .group_by(budget_reservations.c.budget_id)
    )
    return {row.budget_id: row.amount for row in await connection.execute(query)}


async def set_reservations(
    connection: AsyncConnection, amounts: Mapping[str, float], *, holder: str, ttl_s: float
) -> None:
    """Set the reservations of ``holder``, which expire after ``ttl_s`` seconds. An amount of 0 removes one."""
    budget_ids = [budget_id for budget_id in sorted(amounts) if amounts[budget_id] > 0]
    removed = [budget_id for budget_id in amounts if budget_id not in budget_ids]
    if removed:
        query = text("DELETE FROM budget_reservations WHERE holder = :holder AND budget_id = ANY(CAST(:ids AS text[]))")
        await connection.execute(query, {"holder": holder, "ids": removed})
    if budget_ids:
        until = func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, ttl_s)
        rows = [
            {"budget_id": budget_id, "holder": holder, "amount": amounts[budget_id], "expires_at": until}
            for budget_id in budget_ids
        ]
        holding = insert(budget_reservations).values(rows)
        await connection.execute(
            holding.on_conflict_do_update(
                index_elements=["budget_id", "holder"],
                set_={"amount": holding.excluded.amount, "expires_at": holding.excluded.expires_at},
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Model reply of a job as JSON text. ``key`` is the hash of the request."""

    job_id: str
    key: str
    reply: str
    counted: bool = False
    """Whether a stored result of the job already includes the cost of this reply."""


async def checkpoints_of(connection: AsyncConnection, job_id: str) -> Sequence[Checkpoint]:
    query = select(checkpoints).where(checkpoints.c.job_id == job_id)
    return [Checkpoint(**row) for row in (await connection.execute(query)).mappings()]


async def insert_checkpoints(connection: AsyncConnection, new: Iterable[Checkpoint]) -> None:
    """Store replies. Skip those of jobs that have ended."""
    rows = list(new)
    query = text(
        "INSERT INTO checkpoints (job_id, key, reply)"
        " SELECT new.job_id, new.key, new.reply"
        " FROM unnest(CAST(:job_ids AS text[]), CAST(:keys AS text[]), CAST(:replies AS text[]))"
        " AS new(job_id, key, reply)"
        " JOIN jobs ON jobs.id = new.job_id AND jobs.status IN ('queued', 'running')"
        " ON CONFLICT DO NOTHING"
    )
    await connection.execute(
        query,
        {
            "job_ids": [row.job_id for row in rows],
            "keys": [row.key for row in rows],
            "replies": [row.reply for row in rows],
        },
    )


async def mark_checkpoints_counted(connection: AsyncConnection, job_id: str) -> None:
    """Mark the checkpoints of a job as counted, so its next result does not include their cost again."""
    await connection.execute(update(checkpoints).where(checkpoints.c.job_id == job_id).values(counted=True))


async def delete_checkpoints(connection: AsyncConnection, job_id: str) -> None:
    await connection.execute(delete(checkpoints).where(checkpoints.c.job_id == job_id))


class UsageKey(NamedTuple):
    """Dimensions by which usage is recorded."""

    owner: str
    agent: str
    task_id: str
    model: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotals:
    """Calls, tokens and cost. ``usd`` is the cost of the calls with a known price."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced_calls: int = 0

    @classmethod
    def of(cls, usage: Usage) -> UsageTotals:
        return cls(
            calls=usage.calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            usd=usage.usd or 0.0,
            unpriced_calls=usage.calls if usage.usd is None else 0,
        )

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=self.usd + other.usd,
            unpriced_calls=self.unpriced_calls + other.unpriced_calls,
        )


_SUMS = ("calls", "input_tokens", "output_tokens", "usd", "unpriced_calls")


async def add_usage(connection: AsyncConnection, used: Mapping[UsageKey, UsageTotals], *, day: date) -> None:
    """Add usage to a day. The rows are sorted to prevent deadlocks between writers."""
    rows = [{"day": day, **key._asdict(), **asdict(totals)} for key, totals in sorted(used.items(), key=_key)]
    if rows:
        statement = insert(model_usage).values(rows)
        sums = {name: model_usage.c[name] + statement.excluded[name] for name in _SUMS}
        await connection.execute(statement.on_conflict_do_update(index_elements=["day", *UsageKey._fields], set_=sums))


async def usage_by(
    connection: AsyncConnection,
    groups: Sequence[str],
    *,
    owner: str | None,
    agent: str | None,
    task_id: str | None,
    model: str | None,
    since: date | None,
    until: date | None,
) -> list[dict[str, Any]]:
    """Return usage grouped by ``groups`` (column names), highest cost first.

    ``since`` and ``until`` are inclusive.
    """
    columns = [model_usage.c[name] for name in groups]
    sums = [func.sum(model_usage.c[name]).label(name) for name in _SUMS]
    filters = {"owner": owner, "agent": agent, "task_id": task_id, "model": model}
    chosen = equal(*((model_usage.c[name], value) for name, value in filters.items()))
    query = select(*columns, *sums).where(*chosen).group_by(*columns)
    if since is not None:
        query = query.where(model_usage.c.day >= since)
    if until is not None:
        query = query.where(model_usage.c.day <= until)
    query = query.order_by(func.sum(model_usage.c.usd).desc(), *columns)
    return [_row(dict(row), groups) for row in (await connection.execute(query)).mappings()]


def _key(item: tuple[UsageKey, UsageTotals]) -> UsageKey:
    return item[0]


def _row(row: dict[str, Any], groups: Sequence[str]) -> dict[str, Any]:
    """Convert a row to JSON values. ``usd`` is None unless the price of every call is known."""
    unpriced = int(row["unpriced_calls"])
    return {
        **{name: str(row[name]) for name in groups},
        "calls": int(row["calls"]),
        "input_tokens": int(row["input_tokens"]),
        "output_tokens": int(row["output_tokens"]),
        "usd": None if unpriced else float(row["usd"]),
        "usd_known": float(row["usd"]),
        "unpriced_calls": unpriced,
    }
