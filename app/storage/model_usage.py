"""Queries for model usage: calls, tokens and cost per day.

Usage is written together with the replies, so it includes requests of jobs without a result. Call every function inside
a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.listings import equal
from app.storage.tables import model_usage
from rubrics.verdict import Usage


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
    owner: str | None = None,
    agent: str | None = None,
    task_id: str | None = None,
    model: str | None = None,
    since: date | None = None,
    until: date | None = None,
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
