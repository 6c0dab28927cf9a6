"""Fork server for task file processes. It starts once, imports what they need, and forks on request.

It is a separate program, not a fork of the service, and has a minimal environment. Its memory therefore never contained
a key. The file descriptor of its control socket is its first argument. Each message on the socket requests one child
and carries three descriptors: the ``life`` socket and the two sockets of the RPC connection. The server exits when the
control socket is closed.

A task file that must not start processes is forked and supervised by the server itself, because every fork takes
milliseconds. If the file may start processes, or the system cannot forbid it, a guardian process is forked in between.
The guardian is the subreaper of the file's descendants, so even a grandchild in its own session is found and killed.

A supervisor reads the output of the processes, kills them on request, and reports how they ended. Each process has a
``life`` socket whose other end the service holds. When that end is closed, because the service closes it or exits, the
process is killed. The exit report is sent over the same socket.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import selectors
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import psutil

from cache.confinement.privileges import exit_with_parent, set_dumpable
from cache.confinement.seccomp import refuse_system_calls
from judges.gc_tuning import delay_collection, freeze_loaded_objects
from judges.isolation.process_limits import (
    MAX_FILES,
    ScriptLimits,
    apply_limits,
    become_subreaper,
    confine,
    program_is_open_to,
)
from judges.source_code import YAML_SUFFIX

TAIL_BYTES: Final = 16 * 1024
READ_BYTES: Final = 64 * 1024
MEASURE_INTERVAL_S: Final = 0.2
"""Interval at which threads and files of task files' processes are measured."""
COUNT_INTERVAL_S: Final = 0.05
"""Interval at which the processes started by task files are counted."""
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


_FIRST_FD: Final = 3


def run_script_process(
    job: Mapping[str, Any], uid: int | None, parent: int, main_fd: int, side_fd: int, output: int
) -> NoReturn:
    """Run a job in this process and exit.

    ``job`` contains ``entry`` (``module:function``, called with the two RPC sockets), ``limits`` (fields of
    ``ScriptLimits``), ``folder`` (for temporary files), ``judge_files`` (paths that it may read) and ``terminal``. With
    ``terminal``, the process keeps the standard streams of the server, for a debugger; without, standard output and
    error go to the pipe ``output``. This process is killed when ``parent`` exits.
    """
    try:
        os.setsid()
        if not job["terminal"]:
            null_fd = os.open(os.devnull, os.O_RDONLY)
            for source, place in ((null_fd, 0), (output, 1), (output, 2)):
                os.dup2(source, place)
        _close_all_but(main_fd, side_fd)
        tempfile.tempdir = str(job["folder"])
        module, _, function = str(job["entry"]).partition(":")
        entry = getattr(importlib.import_module(module), function)
        limits = ScriptLimits(**job["limits"])
        apply_limits(limits)
        confine(
            uid=uid,
            parent=parent,
            judge_files=[Path(path) for path in job["judge_files"]],
            writable=str(job["folder"]),
            processes=limits.processes > 0,
            network=False,
        )
        entry(socket.socket(fileno=main_fd), socket.socket(fileno=side_fd))
        sys.stdout.flush()
        os._exit(0)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(1)


def _close_all_but(*kept: int) -> None:
    """Close all file descriptors except the standard streams and ``kept``."""
    first = _FIRST_FD
    for fd in sorted(kept):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


MAX_REQUEST_BYTES: Final = 64 * 1024
READY: Final = b"ready"
DESCRIPTORS: Final = 3


def main(arguments: Sequence[str]) -> None:
    """Run the server.

    ``arguments`` are the descriptor of the control socket, the folder that contains the folders of the children, the
    user of the children (empty: the same user), and the modules to import before the first request. A module's
    ``preload`` function is called, so that the children share its results. If an import fails, the server exits with
    the traceback, because its children would be slow or wrong without the module.
    """
    descriptor, folder, uid, *modules = arguments
    control = socket.socket(fileno=int(descriptor))
    set_dumpable(allowed=False)
    delay_collection()
    for module in modules:
        preload = getattr(importlib.import_module(module), "preload", None)
        if preload is not None:
            preload()
    freeze_loaded_objects()  # keeps pages shared with children: their collector does not write to them
    user = int(uid) if uid else None
    if user is not None:
        with suppress(FileNotFoundError):  # the service has ended meanwhile
            Path(folder).chmod(0o711)
    program_is_open_to(os.geteuid() if user is None else user)  # once for all children
    with suppress(BrokenPipeError):  # the service has ended meanwhile
        control.send(READY)
    _Server(control, folder, user).serve()
    shutil.rmtree(folder, ignore_errors=True)  # the service may have been killed and cannot remove it


class _Server:
    def __init__(self, control: socket.socket, folder: str, uid: int | None) -> None:
        self._control = control
        self._folder = folder
        self._uid = uid
        self._supervisor = Supervisor()
        self._guardians: set[int] = set()
        self._is_open = True
        self._can_forbid_processes = _seccomp_is_supported()

    def serve(self) -> None:
        """Handle requests until the control socket is closed.

        Task files that still run are then killed with their parent.
        """
        self._supervisor.watch(self._control, self._handle_request)
        while self._is_open:
            self._supervisor.handle_events(1.0 if self._guardians else None)
            self._guardians -= {pid for pid in self._guardians if os.waitpid(pid, os.WNOHANG)[0] == pid}

    def _handle_request(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self._control, MAX_REQUEST_BYTES, DESCRIPTORS)
        if not message:
            self._is_open = False
            return
        job = json.loads(message) | {"folder": tempfile.mkdtemp(dir=self._folder)}
        limits = ScriptLimits(**job["limits"])
        if any(path.endswith(YAML_SUFFIX) for path in job["judge_files"]):
            importlib.import_module("judges.yaml_tasks.compiler")  # once for all children; other files need no YAML
        if limits.processes == 0 and self._can_forbid_processes:
            self._supervisor.supervise(start_script(job, self._uid, limits, descriptors))
            return
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            _run_and_exit(lambda: _guard(job, self._uid, limits, descriptors, server))
        self._guardians.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)


def _seccomp_is_supported() -> bool:
    """Return whether the kernel supports the seccomp filter that forbids new processes."""
    return _succeeds_in_child(lambda: refuse_system_calls(processes=False, network=False))


def _succeeds_in_child(action: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        with suppress(OSError):
            os._exit(0 if action() else 1)
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def start_script(
    job: Mapping[str, Any], uid: int | None, limits: ScriptLimits, descriptors: Sequence[int]
) -> SupervisedProcess:
    """Fork the process of a task file. ``descriptors`` are those of ``life`` and of the two RPC sockets.

    The returned process owns the first one; the others are closed here.
    """
    life_fd, main_fd, side_fd = descriptors
    output_end, output = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        run_script_process(job, uid, parent, main_fd, side_fd, output)
    for descriptor in (main_fd, side_fd, output):
        os.close(descriptor)
    return SupervisedProcess(pid, limits, socket.socket(fileno=life_fd), output_end, folder=str(job["folder"]))


def _guard(
    job: Mapping[str, Any], uid: int | None, limits: ScriptLimits, descriptors: Sequence[int], server: int
) -> None:
    """Run one task file and kill every process that it leaves behind."""
    os.setsid()
    exit_with_parent(server)
    become_subreaper()
    process = start_script(job, uid, limits, descriptors)
    supervisor = Supervisor()
    supervisor.supervise(process, before_report=lambda: kill_descendants(except_pid=process.pid))
    while not supervisor.is_over:
        supervisor.handle_events(COUNT_INTERVAL_S)
        if len(descendants()) - 1 > limits.processes:
            process.stop("processes")
            with suppress(ProcessLookupError):
                kill_descendants(except_pid=process.pid)


def _run_and_exit(work: Callable[[], None]) -> NoReturn:
    """Run ``work`` in a forked process and exit, so that the parent's code does not continue there."""
    try:
        work()
        os._exit(0)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
