"""Subprocesses of the set-up program, with a timeout, a log file and periodic progress lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.1
PROGRESS_INTERVAL_S = 10.0
GRACE_S = 5.0


@dataclass(frozen=True)
class CommandResult:
    """Outcome of a command. ``tail`` is the last lines of its output."""

    ok: bool
    log: Path
    tail: str
    timed_out: bool = False


class Commands:
    """Runs commands in the checkout and writes one log per command to ``logs``."""

    def __init__(
        self, root: Path, logs: Path, say: Callable[[str], None], *, progress_interval_s: float = PROGRESS_INTERVAL_S
    ) -> None:
        self._root = root
        self._progress_interval_s = progress_interval_s
        self._logs = logs
        self._say = say

    def log_path(self, name: str) -> Path:
        """Return the path of the log of the command ``name``."""
        return self._logs / f"{name}.log"

    def run(
        self, name: str, command: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run ``command`` with ``env`` added to the inherited environment. A failing command does not raise."""
        log = self.log_path(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        started = time.monotonic()
        with log.open("wb") as output:
            try:
                process = subprocess.Popen(  # noqa: S603 - commands are built by this program
                    list(command),
                    cwd=self._root,
                    env={**os.environ, **(env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                output.write(f"{error}\n".encode())
                return CommandResult(False, log, str(error))
            timed_out = self._wait(process, log, started, timeout_s)
        return CommandResult(
            ok=process.returncode == 0 and not timed_out,
            log=log,
            tail=last_lines(log, 3),
            timed_out=timed_out,
        )

    def _wait(self, process: subprocess.Popen[bytes], log: Path, started: float, timeout_s: float) -> bool:
        """Wait until the process ends or times out, and print progress lines. Return whether it timed out."""
        next_report = started + self._progress_interval_s
        try:
            while process.poll() is None:
                now = time.monotonic()
                if now - started > timeout_s:
                    _stop(process)
                    return True
                if now >= next_report:
                    next_report = now + self._progress_interval_s
                    self._say(f"      {now - started:4.0f} s  {last_lines(log, 1)[:100]}")
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            _stop(process)
            raise
        return False


def last_lines(log: Path, count: int) -> str:
    """Return the last ``count`` non-empty lines of a log, without control characters."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4096))
        text = file.read().decode("utf-8", "replace")
    lines = ["".join(c for c in line if c.isprintable()).strip() for line in text.splitlines()]
    return "\n".join([line for line in lines if line][-count:])


def say(text: str) -> None:
    """Print one line and flush, so that it is visible at once in a pipe too."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Terminate the process group of the command."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(GRACE_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
