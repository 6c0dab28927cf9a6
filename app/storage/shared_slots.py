"""Places at something scarce that all workers share: how many requests a model gets at once, how many visits a host.

Each process leases places in bulk and hands them out itself, so a request costs the database nothing. A lease is
renewed every second and runs out by the database's clock: a process that died, or was asleep, has no places. Where
several want more than there are, each gives back what goes beyond its share.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

import structlog
from sqlalchemy import text

from app.background import until_next_round
from app.storage.database import Database
from app.storage.errors import DatabaseUnavailable

_ROUND_S: Final = 1.0
_TTL_S: Final = 10.0
_FIRST_RETRY_S: Final = 0.05
_SHORTEST_ROUND_S: Final = 0.02
_LINGER_S: Final = 3.0
"""How long places that nobody uses are kept, where nobody else wants them."""
_log = structlog.get_logger(__name__)


class SharedSlots:
    """The places of one process, by name."""

    def __init__(self, database: Database, *, ttl_s: float = _TTL_S) -> None:
        self.database = database
        self.ttl_s = ttl_s
        self.holder = secrets.token_hex(8)
        self._places: dict[str, Places] = {}

    def places(self, name: str, total: int, *, linger_s: float = _LINGER_S) -> Places:
        """At most ``total`` places called ``name`` over all processes; each names the same total."""
        found = self._places.get(name)
        if found is None or (found.idle and found.total != total):
            found = self._places[name] = Places(self, name, total, linger_s=linger_s)
        return found

    def remember(self, places: Places) -> None:
        self._places[places.name] = places

    def forget(self, places: Places) -> None:
        if self._places.get(places.name) is places:
            del self._places[places.name]

    async def aclose(self) -> None:
        """Give everything back."""
        await asyncio.gather(*(each.aclose() for each in list(self._places.values())))


class Places:
    """``async with`` takes one place inside; may be entered as often as one likes."""

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
        self._news = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        return not (self._held or self._in_use or self._waiting)

    async def __aenter__(self) -> Self:
        if self._in_use < self._usable() and not self._waiting:
            self._in_use += 1
            return self
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._look()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._give_back()
            else:
                self._waiting.remove(place)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._give_back()

    async def aclose(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
        self._waiting.clear()
        if self._held:
            self._in_use, self._idle_since = 0, float("-inf")
            with suppress(DatabaseUnavailable):
                await self._renew()

    def _lingers(self) -> bool:
        return time.monotonic() - self._idle_since < self._linger_s

    def _usable(self) -> int:
        return self._held if time.monotonic() < self._valid_until else 0

    def _give_back(self) -> None:
        self._in_use -= 1
        self._hand_out()
        if not self._in_use and not self._waiting:
            self._idle_since = time.monotonic()
            if not self._linger_s:
                self._look()

    def _hand_out(self) -> None:
        while self._waiting and self._in_use < self._usable():
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self._in_use += 1

    def _look(self) -> None:
        self._news.set()
        if self._keeper is None or self._keeper.done():
            self._slots.remember(self)
            self._keeper = asyncio.create_task(self._keep(), name=f"places {self.name}")

    async def _keep(self) -> None:
        """Renew the lease, and ask for more or give back, until there is nothing to keep."""
        wait_s = _FIRST_RETRY_S
        while True:
            self._news.clear()
            try:
                await self._renew()
            except DatabaseUnavailable as error:
                _log.warning("shared places not renewed", name=self.name, detail=str(error))
            if self.idle:
                self._slots.forget(self)
                return
            wait_s = min(_ROUND_S, 2 * wait_s) if self._waiting else _FIRST_RETRY_S
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s if self._waiting else _ROUND_S):
                    # Whoever waits is looked after in turn; what comes new may have to wait as long.
                    await (asyncio.sleep(wait_s) if self._waiting else self._news.wait())
            await until_next_round(_SHORTEST_ROUND_S)

    async def _renew(self) -> None:
        """One round: what do others hold, what may we, and that is written down."""
        started = time.monotonic()
        async with self._slots.database.begin() as connection:
            await connection.execute(_LOCK, {"name": self.name})
            values = {"name": self.name, "holder": self._slots.holder}
            others = [(row.held, row.wanted) for row in await connection.execute(_OTHERS, values)]
            wanted = self._in_use + len(self._waiting)
            kept = self._held if wanted or self._lingers() else 0
            held = share(self.total, in_use=self._in_use, wanted=wanted, kept=kept, others=others)
            # What is given back is not handed out any more while that is being written down.
            self._held = min(self._held, held)
            if held or wanted:
                ttl = {"held": held, "wanted": wanted, "ttl": self._slots.ttl_s}
                await connection.execute(_HOLD, values | ttl)
            else:
                await connection.execute(_LEAVE, values)
        self._held, self._valid_until = held, started + 0.8 * self._slots.ttl_s
        self._hand_out()


def share(total: int, *, in_use: int, wanted: int, kept: int, others: Sequence[tuple[int, int]]) -> int:
    """How many places a process may hold: ``wanted`` ones, or as many as it has ``kept``, as far as they are free.

    ``others`` are (held, wanted) of the live ones. Once any of them lacks places, nobody takes more than its share; and
    where there are fewer places than takers, who has one takes no other before all have had one.

    >>> share(10, in_use=0, wanted=20, kept=0, others=[])
    10
    >>> share(10, in_use=4, wanted=20, kept=10, others=[(0, 5)])
    5
    >>> share(10, in_use=9, wanted=9, kept=10, others=[(0, 5)])
    9
    """
    free = max(0, total - sum(held for held, _ in others))
    if not any(wish > held for held, wish in others):
        return max(in_use, min(max(wanted, kept), free))
    takers = 1 + sum(wish > 0 for _, wish in others)
    if total < takers and kept and any(wish and not held for held, wish in others):
        return in_use
    return max(in_use, min(wanted, free, max(1, total // takers)))


_LOCK = text("SELECT pg_advisory_xact_lock(hashtext('assay shared slots'), hashtext(:name))")
_OTHERS = text(
    "SELECT held, wanted FROM shared_slots WHERE name = :name AND holder <> :holder AND expires_at > clock_timestamp()"
)
_HOLD = text(
    "WITH gone AS (DELETE FROM shared_slots WHERE name = :name AND holder <> :holder"
    " AND expires_at <= clock_timestamp())"
    " INSERT INTO shared_slots (name, holder, held, wanted, expires_at)"
    " VALUES (:name, :holder, :held, :wanted, clock_timestamp() + make_interval(secs => :ttl))"
    " ON CONFLICT (name, holder) DO UPDATE"
    " SET held = excluded.held, wanted = excluded.wanted, expires_at = excluded.expires_at"
)
_LEAVE = text("DELETE FROM shared_slots WHERE name = :name AND holder = :holder")
