"""Progress display of the jobs of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.markup import escape

from app.console.progress import ProgressBoard, Step

if TYPE_CHECKING:
    from app.client import Job


class JobBoard:
    """Progress display of jobs. ``labels`` maps job ids to the displayed names. Pass each polled state to ``show``."""

    def __init__(self, board: ProgressBoard, labels: Mapping[str, str]) -> None:
        self._board = board
        self._labels = labels

    def show(self, job: Job) -> None:
        label = self._labels[job.id]
        if job.done:
            self._board.finish(label, _end(label, job))
        elif job.status == "running":
            self._board.update(label, _step(job))


def _step(job: Job) -> Step:
    progress = job.progress
    if job.stage == "judging":
        return Step(stage="judging", done=progress.leaves_done, total=progress.leaves_total, unit="checks")
    if job.stage == "capturing":
        return Step(stage="capturing", done=progress.pages_done, total=progress.pages_total, unit="pages")
    return Step(stage=job.stage or "starting")


def _end(label: str, job: Job) -> str:
    """Return the final line of a job, with markup."""
    if job.status == "succeeded":
        return f"{escape(label)}  [green]judged[/]"
    reason = escape(f"  {job.error.code}: {job.error.detail}".splitlines()[0]) if job.error else ""
    return f"{escape(label)}  [red]{job.status}[/]{reason}"
