"""Queries for budgets: spent amounts, and reservations for running requests.

Call every function inside a transaction. A transaction that changes budgets must call ``add_spent`` first, because it
locks the rows in a fixed order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import purse_holds, purses, submissions

INSTALLATION = "installation"
"""ID of the budget of ``ASSAY_BUDGET_USD``. A submission's budget has the ID of the submission."""
INSTALLATION_TOKENS = "installation tokens"
"""ID of the budget of ``ASSAY_BUDGET_TOKENS``. Its amounts are tokens, not USD."""


async def add_spent(connection: AsyncConnection, usd: Mapping[str, float]) -> dict[str, float]:
    """Add amounts to budgets and lock the rows until the transaction ends. Return the new totals.

    An amount of 0 only locks and reads the row.
    """
    rows = [{"id": purse, "spent_usd": usd[purse]} for purse in sorted(usd)]
    adding = insert(purses).values(rows)
    adding = adding.on_conflict_do_update(
        index_elements=["id"], set_={"spent_usd": purses.c.spent_usd + adding.excluded.spent_usd}
    )
    found = await connection.execute(adding.returning(purses.c.id, purses.c.spent_usd))
    return {row.id: row.spent_usd for row in found}


async def spent(connection: AsyncConnection, purse: str) -> float:
    query = select(purses.c.spent_usd).where(purses.c.id == purse)
    return float((await connection.execute(query)).scalar_one_or_none() or 0.0)


async def limits_of(connection: AsyncConnection, ids: Iterable[str]) -> dict[str, float]:
    """Return the budgets in USD of the submissions that have one."""
    query = select(submissions.c.id, submissions.c.budget_usd).where(
        submissions.c.id.in_(list(ids)), submissions.c.budget_usd.is_not(None)
    )
    return {row.id: row.budget_usd for row in await connection.execute(query)}


async def held_by_others(connection: AsyncConnection, ids: Iterable[str], *, holder: str) -> dict[str, float]:
    """Return the unexpired reservations of other processes, by budget."""
    query = (
        select(purse_holds.c.purse, func.sum(purse_holds.c.usd).label("usd"))
        .where(
            purse_holds.c.purse.in_(list(ids)),
            purse_holds.c.holder != holder,
            purse_holds.c.expires_at > func.clock_timestamp(),
        )
        .group_by(purse_holds.c.purse)
    )
    return {row.purse: row.usd for row in await connection.execute(query)}


async def hold(connection: AsyncConnection, usd: Mapping[str, float], *, holder: str, for_s: float) -> None:
    """Set the reservations of ``holder``, which expire after ``for_s`` seconds. An amount of 0 removes one."""
    kept = [purse for purse in sorted(usd) if usd[purse] > 0]
    removed = [purse for purse in usd if purse not in kept]
    if removed:
        query = text("DELETE FROM purse_holds WHERE holder = :holder AND purse = ANY(CAST(:purses AS text[]))")
        await connection.execute(query, {"holder": holder, "purses": removed})
    if kept:
        until = func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, for_s)
        rows = [{"purse": purse, "holder": holder, "usd": usd[purse], "expires_at": until} for purse in kept]
        holding = insert(purse_holds).values(rows)
        await connection.execute(
            holding.on_conflict_do_update(
                index_elements=["purse", "holder"],
                set_={"usd": holding.excluded.usd, "expires_at": holding.excluded.expires_at},
            )
        )
