"""Clock and ID generator. Both are passed as arguments, so tests can replace them."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from threading import Lock
from typing import Protocol

ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
ID_CHARS = 26
_RANDOM_BITS = 80


class Clock(Protocol):
    """Source of the current time."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        ...


class IdGenerator(Protocol):
    """Generator of unique IDs."""

    def new(self, prefix: str) -> str:
        """Return a new unique ID ``<prefix>_...``. IDs sort in the order in which they were generated."""
        ...


class SystemClock:
    """Clock of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SortableIdGenerator:
    """Thread-safe generator of sortable IDs: 48 bits of milliseconds and 80 random bits in 26 characters.

    The alphabet has no look-alike characters. IDs of one process always sort in the order of generation. If the clock
    steps back, or two IDs fall into the same millisecond, the next ID is the last one plus a random increment.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._lock = Lock()

    def new(self, prefix: str) -> str:
        with self._lock:
            milliseconds = int(self._clock.now().timestamp() * 1000)
            fresh = milliseconds << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS - 1)
            later = milliseconds > self._last >> _RANDOM_BITS
            number = self._last = fresh if later else self._last + 1 + secrets.randbits(32)
        return f"{prefix}_{_encode(number)}"


def _encode(number: int) -> str:
    return "".join(ID_ALPHABET[number >> shift & 31] for shift in range(5 * (ID_CHARS - 1), -1, -5))
