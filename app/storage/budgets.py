"""Queries for budgets: spent amounts, and reservations for running requests.

Call every function inside a transaction. A transaction that changes budgets must call ``add_spent`` first, because it
locks the rows in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import budget_reservations, budgets, submissions

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
