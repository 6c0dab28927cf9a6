"""Supervision of judge file processes: reads their output, kills them on request, and reports how they ended.

Each process has a ``life`` socket whose other end the service holds. When that end is closed, because the service
closes it or exits, the process is killed. The exit report is sent over the same socket.
"""

from __future__ import annotations

import json
import math
import os
import resource
import selectors
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psutil

from judges.isolation.limits import ScriptLimits

TAIL_BYTES: Final = 16 * 1024
READ_BYTES: Final = 64 * 1024
MEASURE_INTERVAL_S: Final = 0.2
"""Interval at which threads and files of judge files' processes are measured."""
MAX_FILES: Final = 5_000
"""Maximum number of files and folders that a judge file's process may have."""
COUNT_INTERVAL_S: Final = 0.05
"""Interval at which the processes started by judge files are counted."""
KILL_TIMEOUT_S: Final = 5.0
_BLOCK_BYTES: Final = 512
"""Unit of ``st_blocks``, whatever the file system uses."""

EventHandler = Callable[[], None]


class SupervisedProcess:
    """Supervised process. ``output_fd`` is the read end of the pipe for its output, ``folder`` contains its files."""

    def __init__(self, pid: int, limits: ScriptLimits, life: socket.socket, output_fd: int, *, folder: str) -> None:
        self.pid = pid
        self.folder = folder
        self.limits = limits
        self.life = life
        self.output_fd = output_fd
        self.pidfd = os.pidfd_open(pid)
        self.stopped: str | None = None
        self.is_over = False
        self._tail = b""
        self._output_bytes = 0
        os.set_blocking(output_fd, False)

    def stop(self, reason: str) -> None:
        """Kill the process and its process group. If called again, the first reason is reported."""
        self.stopped = self.stopped or reason
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def measure(self) -> None:
        """Kill the process if it has more threads, or uses more of the disk, than its limits allow."""
        if thread_count(self.pid) > self.limits.threads:
            self.stop("threads")
        elif disk_usage(self.folder, self.pid) > self.limits.disk_bytes:
            self.stop("disk")

    def read_output(self) -> bool:
        """Read available output. Return False at end of file, or if nothing is available."""
        try:
            data = os.read(self.output_fd, READ_BYTES)
        except BlockingIOError:
            return False
        self._output_bytes += len(data)
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        if self._output_bytes > self.limits.output_bytes:
            self.stop("output")
        return bool(data)

    def report_exit(self) -> None:
        """Reap the process, delete its files, send the exit report and close all descriptors."""
        _, status, used = os.wait4(self.pid, 0)
        shutil.rmtree(self.folder, ignore_errors=True)
        while self.read_output():
            pass
        with suppress(OSError):
            self.life.settimeout(1.0)
            self.life.sendall(json.dumps(self._report(status, used)).encode("ascii"))
        self.life.close()
        os.close(self.output_fd)
        os.close(self.pidfd)

    def _report(self, status: int, used: resource.struct_rusage) -> dict[str, Any]:
        return {
            "stopped": self.stopped,
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "cpu_s": used.ru_utime + used.ru_stime,
            "printed": self._output_bytes,
            "tail": self._tail.decode("utf-8", errors="replace"),
        }


class Supervisor:
    """Event loop that supervises any number of processes."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._processes: set[SupervisedProcess] = set()
        self._measure_at = 0.0

    @property
    def is_over(self) -> bool:
        return not self._processes

    def watch(self, source: socket.socket, handler: EventHandler) -> None:
        """Call ``handler`` whenever ``source`` is readable."""
        self._selector.register(source, selectors.EVENT_READ, handler)

    def supervise(self, process: SupervisedProcess, *, before_report: EventHandler | None = None) -> None:
        """Supervise a process until it ends. ``before_report`` is called after its death and before the exit report."""
        self._processes.add(process)
        events: dict[socket.socket | int, EventHandler] = {
            process.life: lambda: self._on_closed(process),
            process.output_fd: lambda: self._on_output(process),
            process.pidfd: lambda: self._on_exit(process, before_report),
        }
        for watched, handler in events.items():
            self._selector.register(watched, selectors.EVENT_READ, handler)

    def handle_events(self, wait_s: float | None = None) -> None:
        """Wait for events and handle them, at most until the processes are to be measured again."""
        if self._processes:
            until_measuring_s = max(0.0, self._measure_at - time.monotonic())
            wait_s = until_measuring_s if wait_s is None else min(wait_s, until_measuring_s)
        for key, _ in self._selector.select(wait_s):
            key.data()
        if time.monotonic() >= self._measure_at:
            for process in self._processes:
                process.measure()
            self._measure_at = time.monotonic() + MEASURE_INTERVAL_S

    def _on_closed(self, process: SupervisedProcess) -> None:
        if not process.is_over:  # it may have ended in the same round of events
            self._selector.unregister(process.life)
            process.stop("told")

    def _on_output(self, process: SupervisedProcess) -> None:
        if not process.is_over and not process.read_output():
            self._selector.unregister(process.output_fd)

    def _on_exit(self, process: SupervisedProcess, before_report: EventHandler | None) -> None:
        for watched in (process.life, process.output_fd, process.pidfd):
            with suppress(KeyError):
                self._selector.unregister(watched)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if before_report is not None:
            before_report()
        process.is_over = True
        process.report_exit()
        self._processes.discard(process)


def thread_count(pid: int) -> int:
    """Return the number of threads of a process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - called often
            # The name in parentheses may contain spaces. The first field after it is the third.
            return int(file.read().rpartition(b")")[2].split()[17])
    except (OSError, IndexError):
        return 0


def disk_usage(folder: str, pid: int) -> float:
    """Return the bytes on disk of all files below ``folder``, and of those that ``pid`` has open after deleting them.

    More than ``MAX_FILES`` entries, or entries that cannot be counted, count as infinite. Deleted files are counted if
    this process may inspect ``pid``.
    """
    total, entries, folders = 0, 0, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as listing:
                for entry in listing:
                    entries += 1
                    if entries > MAX_FILES:
                        return math.inf
                    with suppress(FileNotFoundError):
                        total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:  # a path that is too long, or a folder without permissions
            return math.inf
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
        for each in descriptors:
            with suppress(OSError):
                status = each.stat()
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    total += status.st_blocks * _BLOCK_BYTES
    return total


def descendants() -> list[psutil.Process]:
    """Return all descendants of this process."""
    with suppress(psutil.Error):
        return psutil.Process().children(recursive=True)
    return []


def kill_descendants(except_pid: int) -> None:
    """Kill and reap all descendants except ``except_pid``, which is dead already and reaped elsewhere.

    Requires ``process_limits.become_subreaper``, which makes orphaned descendants children of this process.
    """
    give_up_at = time.monotonic() + KILL_TIMEOUT_S
    while (remaining := [each for each in descendants() if each.pid != except_pid]) and time.monotonic() < give_up_at:
        for each in remaining:
            with suppress(psutil.Error):
                each.kill()
        for each in remaining:
            with suppress(ChildProcessError):
                os.waitpid(each.pid, os.WNOHANG)
        time.sleep(0.001)
