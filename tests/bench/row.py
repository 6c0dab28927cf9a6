"""One line of the table, and what measures some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. ``met`` is None where there is no target; ``note`` says what else was seen."""

    what: str
    toolkit: str
    target: str
    ours: str
    met: bool | None
    note: str = ""


Measuring: TypeAlias = Callable[[], Iterator[Row]]
