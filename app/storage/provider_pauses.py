"""Queries for model providers that an operator has paused. Call every function inside a transaction."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.tables import provider_pauses


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPause:
    """Pause of a provider, with its reason and the operator who set it."""

    provider: str
    reason: str
    paused_by: str
    paused_at: datetime


async def pause_provider(connection: AsyncConnection, pause: ProviderPause) -> None:
    """Pause a provider. If it is paused already, replace the reason and the operator."""
    query = insert(provider_pauses).values(**dataclasses.asdict(pause))
    changed = {"reason": query.excluded.reason, "paused_by": query.excluded.paused_by}
    await connection.execute(query.on_conflict_do_update(index_elements=["provider"], set_=changed))


async def resume_provider(connection: AsyncConnection, provider: str) -> None:
    """Resume a provider. Do nothing if it is not paused."""
    await connection.execute(delete(provider_pauses).where(provider_pauses.c.provider == provider))


async def paused_providers(connection: AsyncConnection) -> dict[str, ProviderPause]:
    """Return the pauses by provider."""
    rows = (await connection.execute(select(provider_pauses))).mappings()
    return {row["provider"]: ProviderPause(**row) for row in rows}
