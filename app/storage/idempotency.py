"""Idempotency keys: the same request sent twice gets the first answer twice.

The key and the answer are stored in the transaction of the work itself, so there is no moment in which
one exists without the other. A request that finds the key's lock taken is told to come back.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.storage.errors import KeyInProgress, KeyReused
from app.storage.tables import idempotency_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A client's key, whose it is, and a digest of the request it came with."""

    owner: str
    key: str
    fingerprint: str


async def recall(connection: AsyncConnection, key: IdempotencyKey) -> str | None:
    """The stored answer (JSON text) to this request, or None when it is new; holds the key until the end
    of the transaction.

    Raises:
        KeyInProgress: another request with this key is under way.
        KeyReused: the key belongs to a different request.
    """
    lock = int.from_bytes(hashlib.sha256(f"{key.owner}\n{key.key}".encode()).digest()[:8], signed=True)
    if not (await connection.execute(select(func.pg_try_advisory_xact_lock(lock)))).scalar_one():
        raise KeyInProgress("the first request with this Idempotency-Key has not ended yet")
    stored = idempotency_keys.c
    query = select(stored.fingerprint, stored.response).where(stored.owner == key.owner, stored.key == key.key)
    row = (await connection.execute(query)).first()
    if row is None:
        return None
    if row.fingerprint != key.fingerprint:
        raise KeyReused("this Idempotency-Key was used for a different request")
    return str(row.response)


async def remember(connection: AsyncConnection, key: IdempotencyKey, response: str, *, now: datetime) -> None:
    """Keep the answer under its key, in the transaction that ``recall`` began."""
    await connection.execute(
        insert(idempotency_keys).values(
            owner=key.owner, key=key.key, fingerprint=key.fingerprint, response=response, created_at=now
        )
    )
