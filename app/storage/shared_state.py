"""State that all processes on one database share: the secret, provider status, slots and the reply cache.

Slots for model requests and for visits to a host are shared by all workers. Each process leases slots in bulk and
assigns them to its own tasks, so a request needs no query. A lease is renewed every second and expires by the
database's clock: a process that was killed or suspended loses its slots. If the demand exceeds the limit, each process
returns the slots beyond its share.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self

import structlog
from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert

from app.async_tools import cancellable_sleep
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable
from app.storage.provider_status import SharedProviderStatus
from app.storage.reply_cache import DatabaseReplyCache
from app.storage.tables import installation

_RENEW_INTERVAL_S: Final = 1.0
_TTL_S: Final = 10.0
_FIRST_RETRY_S: Final = 0.05
_MIN_INTERVAL_S: Final = 0.02
_LINGER_S: Final = 3.0
"""Time for which unused slots are kept if no other process wants them."""
_log = structlog.get_logger(__name__)


class SharedSlots:
    """Leased slots of one process, by name."""

    def __init__(self, database: Database, *, ttl_s: float = _TTL_S) -> None:
        self.database = database
        self.ttl_s = ttl_s
        self.holder = secrets.token_hex(8)
        self._semaphores: dict[str, SharedSemaphore] = {}

    def semaphore(self, name: str, total: int, *, linger_s: float = _LINGER_S) -> SharedSemaphore:
        """Return the semaphore ``name`` with ``total`` slots over all processes.

        All processes must pass the same ``total``. ``linger_s``: time for which unused slots are kept.
        """
        shared = self._semaphores.get(name)
        if shared is None or (shared.idle and shared.total != total):
            shared = self._semaphores[name] = SharedSemaphore(self, name, total, linger_s=linger_s)
        return shared

    def register(self, semaphore: SharedSemaphore) -> None:
        """Register a semaphore that holds or requests slots."""
        self._semaphores[semaphore.name] = semaphore

    def unregister(self, semaphore: SharedSemaphore) -> None:
        """Remove an idle semaphore."""
        if self._semaphores.get(semaphore.name) is semaphore:
            del self._semaphores[semaphore.name]

    async def aclose(self) -> None:
        """Return all slots."""
        await asyncio.gather(*(semaphore.aclose() for semaphore in list(self._semaphores.values())))


class SharedSemaphore:
    """Distributed semaphore: ``async with`` takes one slot for the block. Can be entered concurrently."""

    def __init__(self, slots: SharedSlots, name: str, total: int, *, linger_s: float) -> None:
        self.name = name
        self.total = total
        self._slots = slots
        self._linger_s = linger_s
        self._held = 0
        self._valid_until = 0.0
        self._in_use = 0
        self._idle_since = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._changed = asyncio.Event()
        self._lease_task: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        return not (self._held or self._in_use or self._waiting)

    async def __aenter__(self) -> Self:
        if self._in_use < self._usable() and not self._waiting:
            self._in_use += 1
            return self
        slot = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        self._wake_lease_task()
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self._release()
            else:
                self._waiting.remove(slot)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release()

    async def aclose(self) -> None:
        if self._lease_task is not None:
            self._lease_task.cancel()
            await asyncio.wait({self._lease_task})
        self._waiting.clear()
        if self._held:
            self._in_use, self._idle_since = 0, float("-inf")
            with suppress(DatabaseUnavailable):
                await self._renew()

    def _keeps_idle_slots(self) -> bool:
        return time.monotonic() - self._idle_since < self._linger_s

    def _usable(self) -> int:
        return self._held if time.monotonic() < self._valid_until else 0

    def _release(self) -> None:
        self._in_use -= 1
        self._assign()
        if not self._in_use and not self._waiting:
            self._idle_since = time.monotonic()
            if not self._linger_s:
                self._wake_lease_task()

    def _assign(self) -> None:
        while self._waiting and self._in_use < self._usable():
            slot = self._waiting.popleft()
            if not slot.done():
                slot.set_result(None)
                self._in_use += 1

    def _wake_lease_task(self) -> None:
        self._changed.set()
        if self._lease_task is None or self._lease_task.done():
            self._slots.register(self)
            self._lease_task = asyncio.create_task(self._maintain_lease(), name=f"slots {self.name}")

    async def _maintain_lease(self) -> None:
        """Renew the lease periodically, and request or return slots, until no slot is held or wanted."""
        wait_s = _FIRST_RETRY_S
        while True:
            self._changed.clear()
            try:
                await self._renew()
            except DatabaseUnavailable as error:
                _log.warning("shared slots not renewed", name=self.name, detail=str(error))
            if self.idle:
                self._slots.unregister(self)
                return
            wait_s = min(_RENEW_INTERVAL_S, 2 * wait_s) if self._waiting else _FIRST_RETRY_S
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s if self._waiting else _RENEW_INTERVAL_S):
                    # While a task waits, retry with backoff. A new waiter does not shorten the interval.
                    await (asyncio.sleep(wait_s) if self._waiting else self._changed.wait())
            await cancellable_sleep(_MIN_INTERVAL_S)

    async def _renew(self) -> None:
        """Read the leases of the other processes, compute this process's share and store its lease."""
        started = time.monotonic()
        async with self._slots.database.begin() as connection:
            await connection.execute(_LOCK, {"name": self.name})
            values = {"name": self.name, "holder": self._slots.holder}
            others = [(row.held, row.wanted) for row in await connection.execute(_OTHERS, values)]
            wanted = self._in_use + len(self._waiting)
            kept = self._held if wanted or self._keeps_idle_slots() else 0
            held = slot_share(self.total, in_use=self._in_use, wanted=wanted, kept=kept, others=others)
            # Stop assigning returned slots before the transaction commits.
            self._held = min(self._held, held)
            if held or wanted:
                ttl = {"held": held, "wanted": wanted, "ttl": self._slots.ttl_s}
                await connection.execute(_SET_LEASE, values | ttl)
            else:
                await connection.execute(_DELETE_LEASE, values)
        self._held, self._valid_until = held, started + 0.8 * self._slots.ttl_s
        self._assign()


def slot_share(total: int, *, in_use: int, wanted: int, kept: int, others: Sequence[tuple[int, int]]) -> int:
    """Return the number of slots that a process may hold.

    Without competition it may hold ``wanted`` slots, or the ``kept`` ones, as far as they are free. As soon as another
    process lacks slots, no process takes more than its share. If there are fewer slots than processes, a process that
    had a slot takes no other one while another process has none.

    Args:
        total: Limit over all processes.
        in_use: Slots in use by this process.
        wanted: Slots this process needs now.
        kept: Slots this process holds and would keep.
        others: (held, wanted) of the other live processes.

    >>> slot_share(10, in_use=0, wanted=20, kept=0, others=[])
    10
    >>> slot_share(10, in_use=4, wanted=20, kept=10, others=[(0, 5)])
    5
    >>> slot_share(10, in_use=9, wanted=9, kept=10, others=[(0, 5)])
    9
    """
    free = max(0, total - sum(held for held, _ in others))
    if not any(demand > held for held, demand in others):
        return max(in_use, min(max(wanted, kept), free))
    competitors = 1 + sum(demand > 0 for _, demand in others)
    if total < competitors and kept and any(demand and not held for held, demand in others):
        return in_use
    return max(in_use, min(wanted, free, max(1, total // competitors)))


_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('assay shared slots'), hashtext(:name))")
_OTHERS = text(
    "SELECT held, wanted FROM shared_slots WHERE name = :name AND holder <> :holder AND expires_at > clock_timestamp()"
)
_SET_LEASE = text(
    "WITH expired AS (DELETE FROM shared_slots WHERE name = :name AND holder <> :holder"
    " AND expires_at <= clock_timestamp())"
    " INSERT INTO shared_slots (name, holder, held, wanted, expires_at)"
    " VALUES (:name, :holder, :held, :wanted, clock_timestamp() + make_interval(secs => :ttl))"
    " ON CONFLICT (name, holder) DO UPDATE"
    " SET held = excluded.held, wanted = excluded.wanted, expires_at = excluded.expires_at"
)
_DELETE_LEASE = text("DELETE FROM shared_slots WHERE name = :name AND holder = :holder")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedState:
    """Access of one process to the shared state. ``replies`` is None on a single machine."""

    secret: bytes
    provider_status: SharedProviderStatus
    slots: SharedSlots
    replies: DatabaseReplyCache | None = None


@asynccontextmanager
async def open_shared_state(
    database: Database, *, secret: bytes, redact: Callable[[str], str], reply_bytes: int
) -> AsyncIterator[SharedState]:
    """Open the shared state during the block.

    Args:
        secret: Becomes the installation's secret if the database has none yet.
        redact: Removes secrets from provider messages.
        reply_bytes: Maximum size of the shared reply cache; 0 disables it.

    Raises:
        DatabaseUnavailable: The database cannot be reached.
    """
    status, slots = SharedProviderStatus(database, redact=redact), SharedSlots(database)
    await status.update_pauses()  # required before the first model request
    updating = asyncio.create_task(status.run(), name="provider status")
    try:
        async with AsyncExitStack() as stack:
            replies = None
            if reply_bytes:
                replies = await stack.enter_async_context(DatabaseReplyCache(database, max_bytes=reply_bytes).running())
            yield SharedState(
                secret=await shared_secret(database, secret), provider_status=status, slots=slots, replies=replies
            )
    finally:
        updating.cancel()
        await asyncio.wait({updating})
        await slots.aclose()


_SECRET = "secret"  # noqa: S105 - the name of a row


async def shared_secret(database: Database, proposed: bytes) -> bytes:
    """Return the secret of the installation. The first process sets it to ``proposed``.

    The secret determines the markers around untrusted text in prompts. With one secret, all workers send identical
    requests and share cached replies.

    Raises:
        DatabaseUnavailable: The database cannot be reached.
    """
    async with database.begin() as connection:
        offered = insert(installation).values(name=_SECRET, value=proposed.hex())
        await connection.execute(offered.on_conflict_do_nothing())
        query = select(installation.c.value).where(installation.c.name == _SECRET)
        return bytes.fromhex((await connection.execute(query)).scalar_one())
