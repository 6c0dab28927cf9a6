"""Providers that an operator wants nobody to ask for a while. Every function takes an open transaction."""

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
    """Who wanted a provider left alone since when, and why."""

    provider: str
    reason: str
    paused_by: str
    paused_at: datetime


async def pause_provider(connection: AsyncConnection, pause: ProviderPause) -> None:
    """Pause a provider; of one that is paused already, the reason and who gave it are replaced."""
    query = insert(provider_pauses).values(**dataclasses.asdict(pause))
    changed = {"reason": query.excluded.reason, "paused_by": query.excluded.paused_by}
    await connection.execute(query.on_conflict_do_update(index_elements=["provider"], set_=changed))


async def resume_provider(connection: AsyncConnection, provider: str) -> None:
    """Let a provider be asked again; nothing happens where it was not paused."""
    await connection.execute(delete(provider_pauses).where(provider_pauses.c.provider == provider))


async def paused_providers(connection: AsyncConnection) -> dict[str, ProviderPause]:
    """The pauses by provider."""
    rows = (await connection.execute(select(provider_pauses))).mappings()
    return {row["provider"]: ProviderPause(**row) for row in rows}
