"""API keys: how they are made, what is kept of them, and who the holder of one is.

A key is ``assay_<id>_<secret>``: the id names it in lists and logs, the secret has 256 random bits. Only its
SHA-256 is stored; for a secret of full entropy a slow hash would add nothing. Each process holds a copy of the table,
which is never older than ``STALE_S``: a revoked key is refused everywhere within that time.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from datetime import datetime

import structlog

from app.background import until_next_round
from app.clock import Clock
from app.settings import Settings
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.keys import expire_key, find_key, insert_key, list_keys, revoke_key
from app.storage.records import KeyRecord, Scope

STALE_S = 5.0
_REFRESH_S = 2.0
_ASK_AGAIN_S = 0.5
_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_CHARS = 10
_SECRET_BYTES = 32
_SHAPE = re.compile(r"assay_(?P<id>[0-9a-z]{10})_[A-Za-z0-9_-]{43}")
_NOBODYS = "0" * 64
LOCAL_OWNER = "local"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is asking. ``everybody``: what others handed in is theirs to see, too."""

    owner: str
    scope: Scope
    everybody: bool = False

    @property
    def sees(self) -> str | None:
        """Whose things may be shown: one owner's, or None for all."""
        return None if self.everybody else self.owner


LOCAL = Caller(owner=LOCAL_OWNER, scope=Scope.ADMIN, everybody=True)
"""Whoever asks a service without keys: it answers to its own machine only."""


def new_key(owner: str, scope: Scope, *, now: datetime, expires_at: datetime | None = None) -> tuple[str, KeyRecord]:
    """A fresh key, to be shown once, and what is to be stored of it."""
    key_id = "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_CHARS))
    key = f"assay_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    record = KeyRecord(
        id=key_id,
        owner=owner,
        scope=scope,
        sha256=_digest(key),
        created_at=now,
        expires_at=expires_at,
        revoked_at=None,
    )
    return key, record


async def make_key(
    database: Database, owner: str, scope: Scope, *, now: datetime, expires_at: datetime | None = None
) -> tuple[str, KeyRecord]:
    """Make a key and store what is kept of it."""
    key, record = new_key(owner, scope, now=now, expires_at=expires_at)
    async with database.begin() as connection:
        await insert_key(connection, record)
    return key, record


async def replace_key(
    database: Database, key_id: str, *, now: datetime, old_ends: datetime, expires_at: datetime | None = None
) -> tuple[str, KeyRecord] | None:
    """A new key of the same owner and scope; the old one is good until ``old_ends``, which may be ``now``.

    None: no such key in use.
    """
    async with database.begin() as connection:
        old = await find_key(connection, key_id)
        if old is None or not old.usable(now):
            return None
        await expire_key(connection, key_id, at=old_ends)
        key, record = new_key(old.owner, old.scope, now=now, expires_at=expires_at)
        await insert_key(connection, record)
    return key, record


async def end_key(database: Database, key_id: str, *, now: datetime) -> KeyRecord | None:
    """Revoke a key. None when there is none."""
    async with database.begin() as connection:
        return await revoke_key(connection, key_id, now=now)


async def known_keys(database: Database) -> list[KeyRecord]:
    """Every key that was ever made, the oldest first."""
    async with database.begin() as connection:
        return await list_keys(connection)


class KeyRing:
    """Tells who the holder of a key is: one of ASSAY_API_KEYS, or a stored one. ``run`` must be running somewhere."""

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        self._configured = tuple(_digest(key.get_secret_value()) for key in settings.api_keys)
        self._database = database
        self._clock = clock
        self._stored: dict[str, KeyRecord] = {}
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    @property
    def needed(self) -> bool:
        """Whether a key is needed at all. Once one was made that stays so, also when the last one is revoked."""
        return bool(self._configured or self._stored)

    async def read(self) -> None:
        """Take the present keys over from the database.

        Raises:
            DatabaseUnavailable
        """
        async with self._reading:
            began = time.monotonic()
            self._stored = {record.id: record for record in await known_keys(self._database)}
            self._read_at = began

    async def run(self) -> None:
        """Keep the copy fresh until cancelled."""
        while True:
            await until_next_round(_REFRESH_S)
            try:
                await self.read()
            except DatabaseUnavailable as error:
                _log.warning("keys not read", detail=str(error))

    async def caller(self, key: str | None) -> Caller | None:
        """Whose key that is; None when nobody's.

        Raises:
            DatabaseUnavailable: a stored key cannot be checked now.
        """
        if not self.needed:
            return LOCAL
        given = _digest(key or "")
        # Each one is compared in constant time, so that the time taken tells nothing.
        if any([hmac.compare_digest(known, given) for known in self._configured]):
            return Caller(owner=f"key-{given[:16]}", scope=Scope.ADMIN)
        shape = _SHAPE.fullmatch(key or "")
        if shape is None:
            return None
        await self._make_fresh(shape["id"])
        record = self._stored.get(shape["id"])
        fits = hmac.compare_digest(_NOBODYS if record is None else record.sha256, given)
        if record is None or not fits or not record.usable(self._clock.now()):
            return None
        return Caller(owner=record.owner, scope=record.scope, everybody=record.scope is Scope.ADMIN)

    async def _make_fresh(self, key_id: str) -> None:
        """Read again when the copy is old, or may be older than the key."""
        age = float("inf") if self._read_at is None else time.monotonic() - self._read_at
        if age > STALE_S or (key_id not in self._stored and age > _ASK_AGAIN_S):
            await self.read()


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
