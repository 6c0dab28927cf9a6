"""How often Python's garbage collector looks for circles, and what it need not look at."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

COLLECT_AFTER: Final = (50_000, 20, 100)
"""Objects until the garbage collector looks at new ones, and rounds until at older ones. Loading the libraries makes
objects that stay: with the usual 700 a quarter of a start is spent looking at them."""


def collect_seldom() -> None:
    """For this process, from now on."""
    gc.set_threshold(*COLLECT_AFTER)


def leave_out_what_is_loaded() -> None:
    """Keep the collector from going through all that is there by now, and stays, again and again.

    A round over the libraries and all they hold stops everything for a tenth of a second.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """As ``collect_seldom`` during the block, for a program that is somebody else's: afterwards it is as it was.

    Blocks may overlap; the last one out sets it back. A program that collects more seldom, or never, goes on so.
    """
    _blocks.enter()
    try:
        yield
    finally:
        _blocks.leave()


class _Blocks:
    """How many blocks are under way, and what was set before the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._many = 0
        self._before: tuple[int, int, int] | None = None

    def enter(self) -> None:
        with self._lock:
            if self._many == 0 and 0 < gc.get_threshold()[0] < COLLECT_AFTER[0]:
                self._before = gc.get_threshold()
                collect_seldom()
            self._many += 1

    def leave(self) -> None:
        with self._lock:
            self._many -= 1
            if self._many == 0 and self._before is not None:
                if gc.get_threshold() == COLLECT_AFTER:  # nobody else has set it meanwhile
                    gc.set_threshold(*self._before)
                self._before = None


_blocks = _Blocks()
