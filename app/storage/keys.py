"""Queries for API keys. Only the hash of a key is stored."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from sqlalchemy import RowMapping, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.database import Database
from app.storage.records import KeyRecord, Scope
from app.storage.tables import api_keys


async def insert_key(connection: AsyncConnection, record: KeyRecord) -> None:
    await connection.execute(insert(api_keys).values(**dataclasses.asdict(record)))


async def load_keys(database: Database) -> list[KeyRecord]:
    """Return all keys, including expired and revoked ones, oldest first."""
    query = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id)
    async with database.begin() as connection:
        return [_record(row) for row in (await connection.execute(query)).mappings()]


async def revoke_key(database: Database, key_id: str, *, now: datetime) -> KeyRecord | None:
    """Revoke a key. Keep the time of the first revocation. Return None if there is no such key."""
    query = (
        update(api_keys)
        .where(api_keys.c.id == key_id)
        .values(revoked_at=func.coalesce(api_keys.c.revoked_at, now))
        .returning(*api_keys.c)
    )
    async with database.begin() as connection:
        row = (await connection.execute(query)).mappings().first()
    return None if row is None else _record(row)


def _record(row: RowMapping) -> KeyRecord:
    return KeyRecord(**{**row, "scope": Scope(row["scope"])})
