"""How often Python's garbage collector looks for circles, and what it need not look at."""

from __future__ import annotations

import gc
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
