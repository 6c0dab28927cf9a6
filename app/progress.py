"""How far the judging of one answer has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Stage(StrEnum):
    """What is being done right now."""

    CAPTURING = "capturing"
    JUDGING = "judging"
    STORING = "storing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A moment in the judging of an answer."""

    stage: Stage
    pages_done: int = 0
    pages_total: int = 0
    leaves_done: int = 0
    leaves_total: int = 0


NOTHING_YET = Progress(stage=Stage.CAPTURING)

Report: TypeAlias = Callable[[Progress], None]
"""Told of each step; must return at once and never raise."""


def ignore(_progress: Progress) -> None:
    """A Report for those who do not want to know."""
