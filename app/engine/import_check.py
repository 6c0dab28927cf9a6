"""Import check of judge files at startup: whether they can be imported, and what they declare.

A child process without API keys imports the files one after the other. If a file takes too long or ends the process, it
is reported, and a new child process continues with the next file.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Timer
from typing import Any, TypeAlias

import structlog

from cache.confinement.privileges import DEFAULT_UID
from judges.isolation.fork_server_pool import clean_environment, sandbox_user
from judges.registry import Judge
from rubrics.node import Strategy

_PROGRAM = "mind2web2.script_check"
START_S = 60.0
SCRIPT_S = 10.0
TOTAL_S = 180.0
_log = structlog.get_logger(__name__)


ImportReport: TypeAlias = "str | dict[str, Any] | None"
"""The error of a file; or the declarations of a native judge; None for a valid public script."""


def with_description(judge: Judge, report: Mapping[str, Any]) -> Judge:
    """Return a native judge with the declarations that the child reported."""
    if not report:
        return judge
    return replace(
        judge,
        description=str(report["description"]),
        version=str(report["version"]),
        strategy=Strategy(report["strategy"]),
        function=str(report["function"]),
    )


class ImportCheckCancelled(Exception):
    """The check of judge files was cancelled."""


class ImportCheck:
    """Check of judge files in a child process, which another thread can cancel."""

    def __init__(self, *, script_s: float | None = None, total_s: float | None = None, uid: int = DEFAULT_UID) -> None:
        """Create a check.

        Args:
            script_s: Time limit of one import (default: SCRIPT_S).
            total_s: Time after which the remaining files count as valid (default: TOTAL_S).
            uid: User of the child process if this process can change users.
        """
        self._uid = sandbox_user(uid)
        self._script_s = SCRIPT_S if script_s is None else script_s
        self._total_s = TOTAL_S if total_s is None else total_s
        self._lock = Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Kill the child process and start no other; ``reports`` raises in its thread."""
        with self._lock:
            self._is_cancelled = True
            if self._child is not None:
                _kill(self._child)

    def reports(self, scripts: Sequence[Path]) -> dict[Path, ImportReport]:
        """Import the judge files in a child process and return its reports. Blocks.

        Raises:
            ImportCheckCancelled: ``cancel`` was called.
        """
        by_path: dict[Path, ImportReport] = {}
        remaining, give_up_at = list(scripts), time.monotonic() + self._total_s
        while remaining:
            report = self._run_child(remaining, give_up_at) if time.monotonic() < give_up_at else None
            if self._is_cancelled:
                raise ImportCheckCancelled
            if report is None:
                _log.warning("judge scripts not checked", scripts=[path.stem for path in remaining])
                break
            reports, ending = report
            by_path |= dict(zip(remaining, reports, strict=False))
            remaining = remaining[len(reports) :]
            if ending is not None and remaining:
                by_path[remaining.pop(0)] = ending
        return by_path

    def _run_child(self, scripts: Sequence[Path], give_up_at: float) -> tuple[list[ImportReport], str | None] | None:
        """Return the child's reports on the first files, and how the next file ended it (None: all were reported).

        Return None if the child did not start, which is not the fault of a file.
        """
        with self._started(scripts) as child:
            if not _line(child, START_S):
                return None
            reports: list[ImportReport] = []
            for _ in scripts:
                allowed_s = max(0.1, min(self._script_s, give_up_at - time.monotonic()))
                started_at = time.monotonic()
                line = _line(child, allowed_s)
                if not line.endswith(b"\n"):
                    is_late = time.monotonic() - started_at >= allowed_s
                    ending = f"takes longer than {self._script_s:g} s" if is_late else "ends the process"
                    return reports, f"importing it {ending}"
                reports.append(json.loads(line))
            return reports, None

    @contextmanager
    def _started(self, scripts: Sequence[Path]) -> Iterator[subprocess.Popen[bytes]]:
        """Start the child process. ``cancel`` can kill it while the context is open."""
        command = [sys.executable, "-P", "-m", _PROGRAM, str(self._uid or ""), *map(str, scripts)]
        with (
            TemporaryDirectory(prefix="assay-import-") as folder,
            subprocess.Popen(  # noqa: S603 - our own program, and paths of the operator
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=clean_environment() | {"TMPDIR": folder, "HOME": folder},
                start_new_session=True,
            ) as child,
        ):
            try:
                with self._lock:
                    self._child = child
                    if self._is_cancelled:
                        _kill(child)
                yield child
            finally:
                with self._lock:
                    self._child = None
                    _kill(child)


def _line(child: subprocess.Popen[bytes], allowed_s: float) -> bytes:
    """Return the next line; incomplete if the child exited, or was killed because it took too long."""
    if child.stdout is None:
        return b""
    timer = Timer(allowed_s, _kill, [child])
    timer.daemon = True  # Ctrl-C may arrive before ``cancel`` is reachable, and the exit must not wait for the timer
    try:
        timer.start()
        return child.stdout.readline()
    finally:
        timer.cancel()


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and all processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
