"""Idempotency keys: the same request sent twice gets the first answer twice.

The key and the answer are stored in the transaction of the work itself, so there is no moment in which
one exists without the other. A request that finds the key's lock taken is told to come back.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from app.storage.direct import DirectConnection
from app.storage.errors import KeyInProgress, KeyReused


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """A client's key, whose it is, and a digest of the request it came with."""

    owner: str
    key: str
    fingerprint: str


async def recall(connection: DirectConnection, key: IdempotencyKey) -> str | None:
    """The stored answer (JSON text) to this request, or None when it is new; holds the key until the end
    of the transaction.

    Raises:
        KeyInProgress: another request with this key is under way.
        KeyReused: the key belongs to a different request.
    """
    lock = int.from_bytes(hashlib.sha256(f"{key.owner}\n{key.key}".encode()).digest()[:8], signed=True)
    locked = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock])
    if await locked.fetchone() != (True,):
        raise KeyInProgress("the first request with this Idempotency-Key has not ended yet")
    query = "SELECT fingerprint, response FROM idempotency_keys WHERE owner = %s AND key = %s"
    row = await (await connection.execute(query, [key.owner, key.key])).fetchone()
    if row is None:
        return None
    fingerprint, response = row
    if fingerprint != key.fingerprint:
        raise KeyReused("this Idempotency-Key was used for a different request")
    return str(response)


async def remember(connection: DirectConnection, key: IdempotencyKey, response: str, *, now: datetime) -> None:
    """Keep the answer under its key, in the transaction that ``recall`` began."""
    await connection.execute(
        "INSERT INTO idempotency_keys (owner, key, fingerprint, response, created_at) VALUES (%s, %s, %s, %s, %s)",
        [key.owner, key.key, key.fingerprint, response, now],
    )
