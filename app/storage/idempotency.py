"""Idempotency keys: a repeated request gets the stored response of the first one.

The key and the response are stored in the same transaction as the work. A request whose key is locked by a running
request is rejected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from app.storage.direct_pool import DirectConnection
from app.storage.errors import KeyInProgress, KeyReused


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """Idempotency key of a client. ``fingerprint`` is a digest of the request."""

    owner: str
    key: str
    fingerprint: str


async def find_response(connection: DirectConnection, key: IdempotencyKey) -> str | None:
    """Return the stored response (JSON text), or None if the key is new. Lock the key until the transaction ends.

    Raises:
        KeyInProgress: Another request with this key is running.
        KeyReused: The key was used for a different request.
    """
    lock = int.from_bytes(hashlib.sha256(f"{key.owner}\n{key.key}".encode()).digest()[:8], signed=True)
    locked = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock])
    if await locked.fetchone() != (True,):
        raise KeyInProgress("The first request with this Idempotency-Key is still running: retry later")
    query = "SELECT fingerprint, response FROM idempotency_keys WHERE owner = %s AND key = %s"
    row = await (await connection.execute(query, [key.owner, key.key])).fetchone()
    if row is None:
        return None
    fingerprint, response = row
    if fingerprint != key.fingerprint:
        raise KeyReused("This Idempotency-Key was used for a different request: use a new key")
    return str(response)


async def store_response(connection: DirectConnection, key: IdempotencyKey, response: str, *, now: datetime) -> None:
    """Store the response. Call in the same transaction as ``find_response``."""
    await connection.execute(
        "INSERT INTO idempotency_keys (owner, key, fingerprint, response, created_at) VALUES (%s, %s, %s, %s, %s)",
        [key.owner, key.key, key.fingerprint, response, now],
    )


async def kept_responses(
    connection: DirectConnection, keys: Sequence[IdempotencyKey], *, since: datetime
) -> dict[str, str]:
    """Return the responses (JSON text) that ``keep_responses`` stored after ``since``, by key. Locks nothing."""
    wanted = ", ".join(["(%s, %s)"] * len(keys))
    query = f"SELECT key, response FROM idempotency_keys WHERE (owner, key) IN ({wanted}) AND created_at >= %s"  # noqa: S608
    values = [value for each in keys for value in (each.owner, each.key)]
    found = await connection.execute(query, [*values, since])
    return {str(key): str(response) for key, response in await found.fetchall()}


async def keep_responses(
    connection: DirectConnection, responses: Mapping[IdempotencyKey, str], *, now: datetime, since: datetime
) -> dict[str, str]:
    """Store responses, except for keys that have one since ``since``. Return the stored ones, by key.

    All callers can thus send the same. For responses that the request determines. Their keys start with a space, which
    keys of clients never do, and are distinct without the owner. ``remove_kept_responses`` removes old ones.

    Does not wait for the disk: if the database server crashes, it may lose the responses of the last second.
    """
    # In this order, so that two processes that store the same responses wait for each other and do not deadlock.
    ordered = sorted(responses, key=lambda each: each.key)
    rows = ", ".join(["(%s, %s, %s, %s, %s)"] * len(ordered))
    query = (
        f"INSERT INTO idempotency_keys AS kept (owner, key, fingerprint, response, created_at) VALUES {rows}"  # noqa: S608
        " ON CONFLICT (owner, key) DO UPDATE SET response = excluded.response, created_at = excluded.created_at"
        " WHERE kept.created_at < %s RETURNING key, set_config('synchronous_commit', 'off', true)"
    )
    values = [value for each in ordered for value in (each.owner, each.key, each.fingerprint, responses[each], now)]
    written = await connection.execute(query, [*values, since])
    stored = {str(key) for key, _ in await written.fetchall()}
    other = [each for each in ordered if each.key not in stored]
    known = await kept_responses(connection, other, since=since) if other else {}
    return {each.key: known.get(each.key, responses[each]) for each in ordered}


async def remove_kept_responses(connection: DirectConnection, *, before: datetime) -> None:
    """Remove the responses that ``keep_responses`` stored before ``before``."""
    query = "DELETE FROM idempotency_keys WHERE left(key, 1) = ' ' AND created_at < %s"
    await connection.execute(query, [before])
