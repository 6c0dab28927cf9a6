"""Differences between a result and its recomputation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDifference:
    """One figure that differs: its position in the result, the recorded and the recomputed value."""

    where: str
    recorded: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.where}: the result says {self.recorded!r}, recomputed {self.recomputed!r}"


class NotRecomputable(Exception):
    """The result lacks the data that its figures are computed from. The message names it."""
