"""Rows of the table, and functions that measure them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table. ``met`` is None without a target; ``note`` contains additional observations."""

    what: str
    toolkit: str
    target: str
    ours: str
    met: bool | None
    note: str = ""


Measuring: TypeAlias = Callable[[], Iterator[Row]]
