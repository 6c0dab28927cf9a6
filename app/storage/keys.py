"""The rows of API keys. Of a key only the hash is here. Every function takes an open transaction."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from sqlalchemy import RowMapping, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.records import KeyRecord, Scope
from app.storage.tables import api_keys


async def insert_key(connection: AsyncConnection, record: KeyRecord) -> None:
    await connection.execute(insert(api_keys).values(**dataclasses.asdict(record)))


async def list_keys(connection: AsyncConnection) -> list[KeyRecord]:
    """Every key that was ever made, the oldest first."""
    query = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
    return [_record(row) for row in (await connection.execute(query)).mappings()]


async def revoke_key(connection: AsyncConnection, key_id: str, *, now: datetime) -> KeyRecord | None:
    """End a key for good; the first revocation stands. None when there is no such key."""
    query = (
        update(api_keys)
        .where(api_keys.c.id == key_id)
        .values(revoked_at=func.coalesce(api_keys.c.revoked_at, now))
        .returning(*api_keys.c)
    )
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else _record(row)


async def find_key(connection: AsyncConnection, key_id: str) -> KeyRecord | None:
    """One key, locked until the transaction ends, so that two cannot replace it at once. None when there is none."""
    query = select(api_keys).where(api_keys.c.id == key_id).with_for_update()
    row = (await connection.execute(query)).mappings().first()
    return None if row is None else _record(row)


async def expire_key(connection: AsyncConnection, key_id: str, *, at: datetime) -> None:
    """Let a key end at ``at``, or when it would have ended if that is sooner."""
    ends = func.least(func.coalesce(api_keys.c.expires_at, at), at)
    await connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(expires_at=ends))


def _record(row: RowMapping) -> KeyRecord:
    return KeyRecord(**{**row, "scope": Scope(row["scope"])})
