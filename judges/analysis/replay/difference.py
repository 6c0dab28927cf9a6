"""What somebody who recomputes a result finds to be otherwise than it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure: ``where`` in the result, what it says and what comes out."""

    where: str
    recorded: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.where}: the result says {self.recorded!r}, recomputed {self.recomputed!r}"


class NotRecomputable(Exception):
    """The result does not hold what its figures are made of; the message says what is missing."""
