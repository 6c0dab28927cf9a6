"""Progress of judging one answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Stage(StrEnum):
    """Current stage of a job."""

    CAPTURING = "capturing"
    JUDGING = "judging"
    STORING = "storing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Snapshot of the progress of one answer."""

    stage: Stage
    pages_done: int = 0
    pages_total: int = 0
    leaves_done: int = 0
    leaves_total: int = 0


NO_PROGRESS = Progress(stage=Stage.CAPTURING)

ProgressCallback: TypeAlias = Callable[[Progress], None]
"""Callback for each progress update. It must not block and must not raise."""


def ignore_progress(_progress: Progress) -> None:
    """Discard progress updates."""
