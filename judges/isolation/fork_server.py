"""Fork server for judge file processes. It starts once, imports what they need, and forks on request.

It is a separate program, not a fork of the service, and has a minimal environment. Its memory therefore never contained
a key. The file descriptor of its control socket is its first argument. Each message on the socket requests one child
and carries three descriptors: the ``life`` socket and the two sockets of the RPC connection. The server exits when the
control socket is closed.

A judge file that must not start processes is forked and supervised by the server itself, because every fork takes
milliseconds. If the file may start processes, or the system cannot forbid it, a guardian process is forked in between.
The guardian is the subreaper of the file's descendants, so even a grandchild in its own session is found and killed.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from cache.confinement.privileges import exit_with_parent, set_dumpable
from cache.confinement.seccomp import refuse_system_calls
from judges.gc_tuning import delay_collection, freeze_loaded_objects
from judges.isolation.limits import ScriptLimits
from judges.isolation.process_limits import (
    apply_limits,
    become_subreaper,
    confine,
    program_is_open_to,
)
from judges.isolation.supervisor import COUNT_INTERVAL_S, SupervisedProcess, Supervisor, descendants, kill_descendants
from judges.source_code import YAML_SUFFIX

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

        Judge files that still run are then killed with their parent.
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
        life_fd, main_fd, side_fd = descriptors
        limits = ScriptLimits(**job["limits"])
        if any(path.endswith(YAML_SUFFIX) for path in job["judge_files"]):
            importlib.import_module("judges.yaml_tasks.compiler")  # once for all children; other files need no YAML
        if limits.processes == 0 and self._can_forbid_processes:
            self._supervisor.supervise(start_script(job, self._uid, limits, life_fd, main_fd, side_fd))
            return
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            _run_and_exit(lambda: _guard(job, self._uid, limits, server, life_fd, main_fd, side_fd))
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
    job: Mapping[str, Any], uid: int | None, limits: ScriptLimits, life_fd: int, main_fd: int, side_fd: int
) -> SupervisedProcess:
    """Fork the process of a judge file. The returned process owns ``life_fd``; other descriptors are closed here."""
    output_end, output = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        run_script_process(job, uid, parent, main_fd, side_fd, output)
    for descriptor in (main_fd, side_fd, output):
        os.close(descriptor)
    return SupervisedProcess(pid, limits, socket.socket(fileno=life_fd), output_end, folder=str(job["folder"]))


def _guard(
    job: Mapping[str, Any],
    uid: int | None,
    limits: ScriptLimits,
    server: int,
    life_fd: int,
    main_fd: int,
    side_fd: int,
) -> None:
    """Run one judge file and kill every process that it leaves behind."""
    os.setsid()
    exit_with_parent(server)
    become_subreaper()
    process = start_script(job, uid, limits, life_fd, main_fd, side_fd)
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
