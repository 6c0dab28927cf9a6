"""The program that judge files' processes are forked from. It is started once, imports what they need, and waits.

It is a fresh program and no fork of the service, with an environment of a few harmless words: a key cannot be found in
memory that never held one. Each message on its control socket (file descriptor in the first argument) is an order for
one child, with three descriptors: its life, and the two sockets of its conversation. It ends when its own is closed.

A file that may start no process is forked from here and watched from here, for every fork costs milliseconds. One that
may, or where the system cannot forbid it, gets a guardian in between: it adopts whatever the file's process leaves
behind, so that even a grandchild in a session of its own is found and killed.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

from judges.gc_tuning import collect_seldom, leave_out_what_is_loaded
from judges.isolation.confining import adopt_orphans, die_with, start_no_process
from judges.isolation.limits import ScriptLimits
from judges.isolation.script_process import become_script
from judges.isolation.watching import LOOK_S, Ward, Watch, descendants, sweep

MAX_ORDER_BYTES: Final = 16 * 1024
READY: Final = b"ready"
DESCRIPTORS: Final = 3


def main(arguments: Sequence[str]) -> None:
    """``arguments``: the descriptor of the control socket, and the modules to import before the first order.

    What a module has by the name of ``get_ready`` is called: made here once, it need not be made in every child.
    A module that cannot be imported ends the program with its traceback: children without it would be slow, or wrong.
    """
    control = socket.socket(fileno=int(arguments[0]))
    for module in arguments[1:]:
        get_ready = getattr(importlib.import_module(module), "get_ready", None)
        if get_ready is not None:
            get_ready()
    collect_seldom()
    leave_out_what_is_loaded()  # what is shared with the children stays shared: their collector does not touch it
    control.send(READY)
    _Server(control).serve()


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._watch = Watch()
        self._guardians: set[int] = set()
        self._is_wanted = True
        self._can_refuse = _can_refuse_processes()

    def serve(self) -> None:
        """Until the control socket is closed. Files that still run lose their parent, and die with it."""
        self._watch.beside(self._control, self._take_order)
        while self._is_wanted:
            self._watch.turn(1.0 if self._guardians else None)
            self._guardians -= {pid for pid in self._guardians if os.waitpid(pid, os.WNOHANG)[0] == pid}

    def _take_order(self) -> None:
        message, descriptors, _, _ = socket.recv_fds(self._control, MAX_ORDER_BYTES, DESCRIPTORS)
        if not message:
            self._is_wanted = False
            return
        order = json.loads(message)
        life_fd, talk_fd, ask_fd = descriptors
        limits = ScriptLimits(**order["limits"])
        if limits.processes == 0 and self._can_refuse:
            self._watch.take(start_script(order, limits, life_fd, talk_fd, ask_fd))
            return
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            _only(lambda: _guard(order, limits, server, life_fd, talk_fd, ask_fd))
        self._guardians.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)


def _can_refuse_processes() -> bool:
    """Whether the kernel here can be had to refuse that a process starts others: tried out, in a child."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if start_no_process() else 1)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def start_script(order: Mapping[str, Any], limits: ScriptLimits, life_fd: int, talk_fd: int, ask_fd: int) -> Ward:
    """Fork the process of a file. The descriptors are then the ward's, or closed here."""
    heard, printed = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        become_script(order, parent, talk_fd, ask_fd, printed)
    for descriptor in (talk_fd, ask_fd, printed):
        os.close(descriptor)
    return Ward(pid, limits, socket.socket(fileno=life_fd), heard)


def _guard(
    order: Mapping[str, Any], limits: ScriptLimits, server: int, life_fd: int, talk_fd: int, ask_fd: int
) -> None:
    """What a guardian does: one file, and no process of it left behind."""
    os.setsid()
    die_with(server)
    adopt_orphans()
    ward = start_script(order, limits, life_fd, talk_fd, ask_fd)
    watch = Watch()
    watch.take(ward, before_report=lambda: sweep(spared=ward.pid))
    while not watch.is_over:
        watch.turn(LOOK_S)
        if len(descendants()) - 1 > limits.processes:
            ward.stop("processes")
            with suppress(ProcessLookupError):
                sweep(spared=ward.pid)


def _only(work: Callable[[], None]) -> NoReturn:
    """Do this in a forked process, and nothing of what its parent goes on with."""
    try:
        work()
        os._exit(0)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
