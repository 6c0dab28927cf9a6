"""Jobs of a server on the progress board: what a polled job means for the eye."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.markup import escape

from app.console.progress import Board, Step

if TYPE_CHECKING:
    from app.client import Job


class JobBoard:
    """Shows jobs under their ``labels`` (by job id); ``show`` is called with each state that was polled."""

    def __init__(self, board: Board, labels: Mapping[str, str]) -> None:
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
    """One line of markup."""
    if job.status == "succeeded":
        return f"{escape(label)}  [green]judged[/]"
    reason = escape(f"  {job.error.code}: {job.error.detail}".splitlines()[0]) if job.error else ""
    return f"{escape(label)}  [red]{job.status}[/]{reason}"
