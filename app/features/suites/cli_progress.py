"""Progress display of a suite run on stderr, with the current figures.

On a terminal it is a progress bar, otherwise a line every 10 seconds. The figures are means over the steps judged so
far.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_LINE_EVERY_S = 10.0


class StepProgress:
    """``StepWatcher`` that displays progress. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._sums = {"element_acc": 0.0, "action_f1": 0.0, "step_acc": 0.0}
        self._scored = self._not_judged = self._reused = 0
        self._printed_at = time.monotonic()
        self._bar = Progress(
            TextColumn("steps"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not self._live,
            transient=True,
        )
        self._task = self._bar.add_task("steps", total=None, figures="")

    def __enter__(self) -> StepProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def step(self, record: Mapping[str, Any], *, done: int, total: int, reused: bool) -> None:
        """Record a finished step."""
        self._reused += reused
        if record["status"] == "scored":
            self._scored += 1
            for name in self._sums:
                self._sums[name] += float(record[name])
        elif record["status"] == "not_judged":
            self._not_judged += 1
        self._bar.update(self._task, completed=done, total=total, figures=self.figures)
        now = time.monotonic()
        if not self._live and (done == total or now - self._printed_at >= _LINE_EVERY_S):
            self._printed_at = now
            self._console.print(f"{done}/{total} steps  {self.figures}", soft_wrap=True, markup=False)

    @property
    def figures(self) -> str:
        """Current means, for example ``ele 0.812 f1 0.903 step 0.774``, and the number of unjudged and reused steps."""
        means = [total / self._scored if self._scored else 0.0 for total in self._sums.values()]
        shown = [f"{name} {value:.3f}" for name, value in zip(("ele", "f1", "step"), means, strict=True)]
        notes = [
            f"{count} {what}" for count, what in ((self._not_judged, "not judged"), (self._reused, "reused")) if count
        ]
        return "  ".join([*shown, *notes])
