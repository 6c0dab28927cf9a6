"""Progress display on stderr: a bar for each active answer, and a line for each finished one.

On a terminal the bars are updated in place. Otherwise (log file, pipe) each change of stage prints one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from app.console.streams import counted, stderr_console
from assay_client import Job

LABEL_WIDTH = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Progress of one answer: ``done`` of ``total`` units in a ``stage``. ``total`` is 0 if it is unknown."""

    stage: str
    done: int = 0
    total: int = 0
    unit: str = ""


class ProgressBoard:
    """Progress display of ``total`` answers, as a context manager. A ``label`` identifies each answer.

    Without ``live``, it prints lines on a terminal, too.
    """

    def __init__(self, console: Console, total: int, *, unit: str = "answers", live: bool = True) -> None:
        self._console = console
        self._is_live = live and console.is_terminal
        self._stages: dict[str, str] = {}
        self._bars: dict[str, TaskID] = {}
        self._finished: set[str] = set()
        self._total = total
        self._unit = unit
        self._progress = _Bars(
            TextColumn("{task.description}"),
            TextColumn("{task.fields[stage]}", style="cyan"),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not self._is_live,
            transient=True,
        )
        self._overall = self._progress.add_task("all", total=total, stage="", count=f"0/{total} {unit}")

    def __enter__(self) -> ProgressBoard:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._progress.stop()

    def update(self, label: str, step: Step) -> None:
        """Show the current step of an answer."""
        if label in self._finished:
            return
        if not self._is_live:
            if self._stages.get(label) != step.stage:
                self._console.print(f"{escape(label)}  {step.stage}", soft_wrap=True)
            self._stages[label] = step.stage
            return
        if label not in self._bars:
            self._bars[label] = self._progress.add_task(_fitted(label), total=None, stage="", count="")
        self._progress.update(
            self._bars[label],
            stage=step.stage,
            completed=step.done,
            total=step.total or None,
            count=f"{step.done}/{step.total} {step.unit}" if step.total else "",
        )

    def finish(self, label: str, line: str) -> None:
        """Replace the bar of an answer with a permanent ``line``, which may contain markup."""
        if label in self._finished:
            return
        self._finished.add(label)
        if label in self._bars:
            self._progress.remove_task(self._bars.pop(label))
        self._console.print(line, soft_wrap=True)
        done = len(self._finished)
        self._progress.update(self._overall, completed=done, count=f"{done}/{self._total} {self._unit}")

    def print_line(self, line: str) -> None:
        """Print a line, which may contain markup, above the bars."""
        self._console.print(line, soft_wrap=True)


class _Bars(Progress):
    """Progress bars with the first one, the total, at the bottom."""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table([*self.tasks[1:], *self.tasks[:1]])


def _fitted(label: str) -> str:
    """Pad or shorten a label to LABEL_WIDTH characters. It is shortened in the middle, to keep the end readable."""
    if len(label) <= LABEL_WIDTH:
        return escape(label.ljust(LABEL_WIDTH))
    head = (LABEL_WIDTH - 3) // 2
    return escape(f"{label[:head]}...{label[-(LABEL_WIDTH - 3 - head) :]}")


class JobBoard:
    """Progress display of jobs. ``labels`` maps job ids to the displayed names. Pass each polled state to ``show``."""

    def __init__(self, board: ProgressBoard, labels: Mapping[str, str]) -> None:
        self._board = board
        self._labels = labels

    def show(self, job: Job) -> None:
        label = self._labels[job.id]
        if job.done:
            self._board.finish(label, _final_line(label, job))
        elif job.is_paused:
            self._board.update(self._labels[job.id], Step(stage=f"paused, {job.error.code if job.error else ''}"))
        elif job.status == "running":
            self._board.update(label, _step(job))


def print_paused(jobs: Iterable[Job]) -> bool:
    """Print on stderr why jobs are paused and how they continue, each reason once. Return whether any is paused."""
    reasons = Counter(
        f"{job.error.code}: {job.error.detail}" if job.error else "paused" for job in jobs if job.is_paused
    )
    for reason, number in reasons.items():
        stderr_console().print(f"[yellow]{counted(number, 'job')} paused[/], {escape(reason)}", soft_wrap=True)
    return bool(reasons)


def _step(job: Job) -> Step:
    progress = job.progress
    if job.stage == "judging":
        return Step(stage="judging", done=progress.leaves_done, total=progress.leaves_total, unit="checks")
    if job.stage == "capturing":
        return Step(stage="capturing", done=progress.pages_done, total=progress.pages_total, unit="pages")
    return Step(stage=job.stage or "starting")


def _final_line(label: str, job: Job) -> str:
    if job.status == "succeeded":
        return f"{escape(label)}  [green]judged[/]"
    reason = escape(f"  {job.error.code}: {job.error.detail}".splitlines()[0]) if job.error else ""
    return f"{escape(label)}  [red]{job.status}[/]{reason}"
