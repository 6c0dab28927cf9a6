"""Tuning of Python's garbage collector: thresholds, and freezing of long-lived objects."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GC_THRESHOLDS: Final = (5_000, 4, 5_000)
"""Thresholds for ``gc.set_threshold`` in a process that judges. A collection of the second generation, 25,000 objects,
takes up to 20 ms. Full collections, which stop the process for long, begin after 100 million objects."""
_LOADING_THRESHOLDS: Final = (500_000, 20, 100)
"""Thresholds until everything is loaded. Importing the libraries allocates 150,000 long-lived objects: with the default
of 700, a quarter of the start-up time is spent on garbage collection, and with 50,000 a tenth."""


def delay_collection() -> None:
    """Make collections rare until ``freeze_loaded_objects``."""
    gc.set_threshold(*_LOADING_THRESHOLDS)


def raise_gc_thresholds() -> None:
    """Apply ``GC_THRESHOLDS`` to this process."""
    gc.set_threshold(*GC_THRESHOLDS)


def freeze_loaded_objects() -> None:
    """Exclude all objects that exist now from future collections, and apply ``GC_THRESHOLDS``.

    A full collection over all loaded libraries would stop the process for about 100 ms. For the same reason, none
    precedes: the garbage of the imports, about 2,000 objects, stays.
    """
    gc.freeze()
    raise_gc_thresholds()


@contextmanager
def raised_gc_thresholds() -> Iterator[None]:
    """Apply ``GC_THRESHOLDS`` during the block and restore the previous thresholds afterwards.

    For programs that only host this package. Blocks may overlap; the last one restores. Larger thresholds and a
    disabled collector are left unchanged.
    """
    _blocks.enter()
    try:
        yield
    finally:
        _blocks.leave()


class _ActiveBlocks:
    """Counter of active blocks, with the thresholds from before the first one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before: tuple[int, int, int] | None = None

    def enter(self) -> None:
        with self._lock:
            if self._count == 0 and 0 < gc.get_threshold()[0] < GC_THRESHOLDS[0]:
                self._before = gc.get_threshold()
                raise_gc_thresholds()
            self._count += 1

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._before is not None:
                if gc.get_threshold() == GC_THRESHOLDS:  # unchanged by other code since
                    gc.set_threshold(*self._before)
                self._before = None


_blocks = _ActiveBlocks()
