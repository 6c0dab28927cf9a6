"""Time and names, as arguments: so that tests can decide both."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Protocol

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_CHARS = 26
_RANDOM_BITS = 80


class Clock(Protocol):
    """Tells the time of day."""

    def now(self) -> datetime:
        """The present moment, UTC-aware."""
        ...


class Ids(Protocol):
    """Makes names for new things."""

    def new(self, prefix: str) -> str:
        """A name never given before, ``<prefix>_...``; names made later sort later."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SortableIds:
    """48 bits of milliseconds and 80 random bits, in 26 characters without look-alikes.

    Names of one process sort in the order they were made, also when the clock steps back or two fall
    into one millisecond: then the random part counts up from the last name.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def new(self, prefix: str) -> str:
        milliseconds = int(self._clock.now().timestamp() * 1000)
        fresh = milliseconds << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS - 1)
        self._last = fresh if milliseconds > self._last >> _RANDOM_BITS else self._last + 1 + secrets.randbits(32)
        return f"{prefix}_{_encode(self._last)}"


def _encode(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(5 * (_ID_CHARS - 1), -1, -5))
