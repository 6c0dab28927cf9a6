"""API keys: creation and authentication.

A key is ``assay_<id>_<secret>``. The ID identifies the key in lists and logs. The secret has 256 random bits, and only
the SHA-256 of the key is stored: a slow hash adds nothing for a random secret. Each process caches the table of keys
for at most ``MAX_CACHE_AGE_S`` seconds, so a revoked key is rejected everywhere within that time.

Rate limits and stream limits are per caller and process.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import structlog

from app.async_tools import cancellable_sleep
from app.clock import Clock
from app.settings import ConfiguredKey, Settings
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.keys import insert_key, load_keys
from app.storage.records import KeyRecord, Scope

MAX_CACHE_AGE_S = 5.0
_REFRESH_S = 2.0
_MIN_RELOAD_INTERVAL_S = 0.5
_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_CHARS = 10
_SECRET_BYTES = 32
_SHAPE = re.compile(r"assay_(?P<id>[0-9a-z]{10})_[A-Za-z0-9_-]{43}")
_UNKNOWN_KEY_SHA256 = "0" * 64
LOCAL_OWNER = "local"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Authenticated caller. ``sees_all_owners``: the caller may see the data of all owners."""

    owner: str
    scope: Scope
    sees_all_owners: bool = False

    @property
    def visible_owner(self) -> str | None:
        """Owner whose data the caller may see; None: all owners."""
        return None if self.sees_all_owners else self.owner


LOCAL_CALLER = Caller(owner=LOCAL_OWNER, scope=Scope.ADMIN, sees_all_owners=True)
"""Caller of a service without API keys, which accepts requests from its own machine only."""


def new_key(owner: str, scope: Scope, *, now: datetime, expires_at: datetime | None = None) -> tuple[str, KeyRecord]:
    """Generate a key. Return the key itself, to be shown once, and the record to store."""
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


async def create_key(
    database: Database, owner: str, scope: Scope, *, now: datetime, expires_at: datetime | None = None
) -> tuple[str, KeyRecord]:
    """Generate a key and store its record."""
    key, record = new_key(owner, scope, now=now, expires_at=expires_at)
    async with database.begin() as connection:
        await insert_key(connection, record)
    return key, record


class KeyAuthenticator:
    """Authenticator for the keys of ``ASSAY_API_KEYS`` and the stored keys. Requires ``run`` as a background task."""

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        self._configured = _configured_callers(settings.configured_keys)
        self._database = database
        self._clock = clock
        self._stored: dict[str, KeyRecord] = {}
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    @property
    def required(self) -> bool:
        """Whether requests need a key. Stays True after the last stored key was revoked."""
        return bool(self._configured or self._stored)

    async def reload(self) -> None:
        """Reload the keys from the database.

        Raises:
            DatabaseUnavailable: The database cannot be reached.
        """
        async with self._reading:
            began = time.monotonic()
            self._stored = {record.id: record for record in await load_keys(self._database)}
            self._read_at = began

    async def run(self) -> None:
        """Reload the keys periodically until cancelled."""
        while True:
            await cancellable_sleep(_REFRESH_S)
            try:
                await self.reload()
            except DatabaseUnavailable as error:
                _log.warning("API keys not reloaded", detail=str(error))

    async def authenticate(self, key: str | None) -> Caller | None:
        """Return the caller that a key belongs to, or None if the key is not valid.

        Raises:
            DatabaseUnavailable: The cached keys are outdated and cannot be reloaded.
        """
        if not self.required:
            return LOCAL_CALLER
        digest = _digest(key or "")
        # Compare with every key, in constant time, to leak no timing information.
        matching = [caller for known, caller in self._configured.items() if hmac.compare_digest(known, digest)]
        if matching:
            return matching[0]
        shape = _SHAPE.fullmatch(key or "")
        if shape is None:
            return None
        await self._reload_if_stale(shape["id"])
        record = self._stored.get(shape["id"])
        fits = hmac.compare_digest(_UNKNOWN_KEY_SHA256 if record is None else record.sha256, digest)
        if record is None or not fits or not record.usable(self._clock.now()):
            return None
        return Caller(owner=record.owner, scope=record.scope, sees_all_owners=record.scope is Scope.ADMIN)

    async def _reload_if_stale(self, key_id: str) -> None:
        """Reload the keys if the cache is outdated, or if the key may be newer than the cache."""
        age = float("inf") if self._read_at is None else time.monotonic() - self._read_at
        if age > MAX_CACHE_AGE_S or (key_id not in self._stored and age > _MIN_RELOAD_INTERVAL_S):
            await self.reload()


def _configured_callers(keys: Sequence[ConfiguredKey]) -> dict[str, Caller]:
    """Return the callers of ``ASSAY_API_KEYS`` by the digest of their key.

    A key without owner is an owner of its own. It has the scope ``operator`` if it is the only configured key, else
    ``submit``: several such keys are tenants, and a tenant must not control what all share.
    """
    default = Scope.OPERATOR if len(keys) == 1 else Scope.SUBMIT
    callers = {}
    for one in keys:
        digest, scope = _digest(one.key), default if one.scope is None else Scope(one.scope)
        owner = one.owner or f"key-{digest[:16]}"
        callers[digest] = Caller(owner=owner, scope=scope, sees_all_owners=scope is Scope.ADMIN)
    return callers


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


_BURST_S = 2.0
_MAX_BUCKETS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Requests that a caller may send at once (``limit``), that remain, and seconds until all are available again.

    ``wait_s``: seconds until the request that asked is allowed; 0: it is allowed now.
    """

    wait_s: float
    limit: int
    remaining: int
    full_in_s: int


class RateLimiter:
    """Token bucket rate limiter with one bucket per caller."""

    def __init__(self, per_s: float, *, monotonic_s: Callable[[], float]) -> None:
        """``per_s``: requests per second, with bursts of ``_BURST_S`` seconds' worth; 0: no limit."""
        self._per_s = per_s
        self._burst = max(1.0, per_s * _BURST_S)
        self._now = monotonic_s
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, owner: str) -> Allowance | None:
        """Take a token if there is one, and return what the owner may still send; None: there is no limit."""
        if not self._per_s:
            return None
        now = self._now()
        tokens, since = self._buckets.get(owner, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_s)
        wait_s = max(0.0, (1.0 - tokens) / self._per_s)
        if not wait_s:
            tokens -= 1.0
            if len(self._buckets) > _MAX_BUCKETS:
                self._drop_full_buckets(now)
        self._buckets[owner] = (tokens, now)
        full_in_s = math.ceil((self._burst - tokens) / self._per_s)
        return Allowance(wait_s=wait_s, limit=int(self._burst), remaining=int(tokens), full_in_s=full_in_s)

    def _drop_full_buckets(self, now: float) -> None:
        """Drop the full buckets. They are equivalent to new ones."""
        fills_s = self._burst / self._per_s
        self._buckets = {owner: each for owner, each in self._buckets.items() if now - each[1] < fills_s}


class StreamLimiter:
    """Limiter of open event streams per caller."""

    def __init__(self, max_open: int) -> None:
        self._max_open = max_open
        self._open: Counter[str] = Counter()

    def is_full(self, owner: str) -> bool:
        """Return whether ``owner`` has the maximum number of streams open."""
        return self._open[owner] >= self._max_open

    @contextmanager
    def open_stream(self, owner: str) -> Iterator[None]:
        """Count one more open stream during the block."""
        self._open[owner] += 1
        try:
            yield
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]
